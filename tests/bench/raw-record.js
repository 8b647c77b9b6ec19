// Makes steps over a record in a file, one after another: open, read, write, flush and close.

const record = new TextEncoder().encode(JSON.stringify({ holder: "x".repeat(500) }));
const there = navigator.storage.getDirectory().then((root) => root.getFileHandle("bench-record", { create: true }));

onmessage = async ({ data: n }) => {
  const file = await there;
  const seen = new Uint8Array(record.length);
  for (let i = 0; i < n; i++) {
    const handle = await file.createSyncAccessHandle();
    handle.read(seen, { at: 0 });
    handle.write(record, { at: 0 });
    handle.flush();
    handle.close();
  }
  postMessage(n);
};
