// The worker of "raw in a worker": one message to ask, one when granted, one to give
// back, one when that is done.

const releases = new Map();

onmessage = async ({ data: { id, name } }) => {
  if (name === undefined) {
    releases.get(id)();
    return;
  }
  await navigator.locks.request(name, () => new Promise((release) => {
    releases.set(id, release);
    postMessage({ id, granted: true });
  }));
  releases.delete(id);
  postMessage({ id });
};
