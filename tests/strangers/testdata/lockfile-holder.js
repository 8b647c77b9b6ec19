// Holds the lock whose name it receives.
onmessage = ({ data }) => navigator.locks.request(data, () => {
  postMessage("held");
  return new Promise(() => {});
});
