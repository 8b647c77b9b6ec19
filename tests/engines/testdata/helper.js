// Runs before the package's helper worker. A message {stopAt: n} makes the worker block forever before the n-th of its
// operations on files from then on; the worker first posts {at: n}.
{
  const operations = [
    [globalThis.FileSystemDirectoryHandle, ["getDirectoryHandle", "getFileHandle", "keys"]],
    [globalThis.FileSystemFileHandle, ["createSyncAccessHandle"]],
    [globalThis.FileSystemSyncAccessHandle, ["write", "flush", "close"]],
    [SubtleCrypto, ["digest"]],
  ];
  let left = Infinity;
  for (const [kind, names] of operations) {
    for (const name of kind ? names : []) {
      const real = kind.prototype[name];
      kind.prototype[name] = function (...args) {
        if (left-- <= 0) {
          postMessage({ at: name });
          for (;;);
        }
        return real.apply(this, args);
      };
    }
  }
  addEventListener("message", (event) => {
    if (event.data.stopAt === undefined) return;
    left = event.data.stopAt;
    event.stopImmediatePropagation();
  });
}
