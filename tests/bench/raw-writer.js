// Writes a new file and flushes it: what every save costs at the least.

const root = navigator.storage.getDirectory();

onmessage = async ({ data: { name, bytes } }) => {
  const folder = await (await root).getDirectoryHandle("bench-raw", { create: true });
  const file = await folder.getFileHandle(name, { create: true });
  const handle = await file.createSyncAccessHandle();
  handle.write(bytes, { at: 0 });
  handle.flush();
  handle.close();
  postMessage(name);
  if (Number(name) > 20) await folder.removeEntry(String(Number(name) - 20));
};
