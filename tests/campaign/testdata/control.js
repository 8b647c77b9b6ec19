// Writes what it is sent into a file of its own, as a journal does.
let handle;
onmessage = ({ data }) => {
  handle.write(new TextEncoder().encode(String(data)), { at: 0 });
  postMessage(data);
};
(async () => {
  const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle("control", { create: true });
  handle = await (await folder.getFileHandle(crypto.randomUUID(), { create: true })).createSyncAccessHandle();
  postMessage(0);
})();
