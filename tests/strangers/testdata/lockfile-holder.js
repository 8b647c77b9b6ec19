// Holds the lock whose name it hears.
onmessage = ({ data }) => navigator.locks.request(data, () => {
  postMessage("held");
  return new Promise(() => {});
});
