// The least that a lease on a path of three levels can be, without events, heartbeat, token and errors: the page asks
// its worker, which requests the locks of all levels at once and writes a record while it holds them.

const names = ["l", "l/u1", "l/u1/a1", "l/u1/a1/r1"];
const record = new TextEncoder().encode(JSON.stringify({ holder: "x".repeat(500) }));
const there = navigator.storage.getDirectory().then((root) => root.getFileHandle("bench-lease", { create: true }));
let release, ended;

onmessage = async ({ data: acquire }) => {
  if (!acquire) {
    release();
    await ended;
    return postMessage(null);
  }
  const over = new Promise((done) => { release = done; });
  const all = names.map((name, i) => {
    let end;
    const granted = new Promise((done) => { end = navigator.locks.request(name, { mode: i < 3 ? "shared" : "exclusive" }, () => { done(); return over; }); });
    return { granted, end };
  });
  ended = Promise.all(all.map(({ end }) => end));
  await Promise.all(all.map(({ granted }) => granted));
  const handle = await (await there).createSyncAccessHandle();
  handle.read(new Uint8Array(record.length), { at: 0 });
  handle.write(record, { at: 0 });
  handle.close();
  postMessage(null);
};
