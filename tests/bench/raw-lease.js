// The least that a lease on a path of three levels can be, without events, heartbeat, token and errors: the page asks
// its worker, which requests the locks of all levels at once and writes a record while it holds them.

import { atOnce } from "./at-once.js";

const names = ["l", "l/u1", "l/u1/a1", "l/u1/a1/r1"];
const record = new TextEncoder().encode(JSON.stringify({ holder: "x".repeat(500) }));
const there = navigator.storage.getDirectory().then((root) => root.getFileHandle("bench-lease", { create: true }));
let release;

onmessage = async ({ data: acquire }) => {
  if (!acquire) return release();
  await atOnce(names, async () => {
    const handle = await (await there).createSyncAccessHandle();
    handle.read(new Uint8Array(record.length), { at: 0 });
    handle.write(record, { at: 0 });
    handle.close();
    const released = new Promise((done) => { release = done; });
    postMessage(null);
    await released;
  });
  postMessage(null);
};
