/** Asks for all names at once, the last one exclusively and the others shared. */
export async function atOnce(names, body) {
  let release;
  const over = new Promise((done) => { release = done; });
  const ended = [];
  await Promise.all(names.map((name, i) => new Promise((granted) => {
    ended.push(navigator.locks.request(name, { mode: i < names.length - 1 ? "shared" : "exclusive" }, () => { granted(); return over; }));
  })));
  await body();
  release();
  await Promise.all(ended);
}
