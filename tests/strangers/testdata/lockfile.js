// The behaviours that the tests of proper-lockfile ask of a lock, as far as they concern locks and not files. Each test has
// the name of the file there in which its like is.
const { locks } = navigator;
const check = (fact, what) => { if (!fact) throw new Error(what); };
const name = () => `lockfile ${crypto.randomUUID()}`;
const wait = (ms) => new Promise((done) => { setTimeout(done, ms); });
const lock = (name, options = {}) => new Promise((resolve, reject) => {
  const held = locks.request(name, options, (granted) => granted ? new Promise((release) => resolve({ release: async () => { release(); await held; }, get held() { return held; } })) : resolve(null));
  held.catch(reject);
});
const isLocked = async (name) => (await locks.query()).held.some((one) => one.name === name);

describe("lock.test.js", () => {
  it("a lock that is held is refused", async () => {
    const x = name(), one = await lock(x);
    check(await lock(x, { ifAvailable: true }) === null, "it was granted twice");
    await one.release();
  });
  it("other names are not concerned", async () => {
    const one = await lock(name()), two = await lock(name(), { ifAvailable: true });
    check(two, "refused");
    await Promise.all([one.release(), two.release()]);
  });
  it("a retry is granted when the holder releases", async () => {
    const x = name(), one = await lock(x);
    const retry = (async () => {
      for (;;) {
        const two = await lock(x, { ifAvailable: true });
        if (two) return two;
        await wait(20);
      }
    })();
    await wait(100);
    await one.release();
    await (await retry).release();
  });
  it("retries end when the caller gives up", async () => {
    const x = name(), one = await lock(x);
    const failure = await lock(x, { signal: AbortSignal.timeout(100) }).catch((error) => error);
    check(failure.name === "TimeoutError", `it was ${failure}`);
    check(!(await locks.query()).pending.some((one) => one.name === x), "it is still in line");
    await one.release();
  });
  it("a holder whose lock was taken over gets an event", async () => {
    const x = name(), one = await lock(x), two = await lock(x, { steal: true });
    const failure = await one.held.catch((error) => error);
    check(failure.name === "AbortError", `it was ${failure}`);
    check(await lock(x, { ifAvailable: true }) === null, "the new holder has lost it");
    await two.release();
  });
  it("a holder that goes on keeps its lock", async () => {
    const x = name(), one = await lock(x);
    await wait(3000);
    check(await isLocked(x), "it was lost");
    await one.release();
  });
  it("the lock of a holder that is gone is free", async () => {
    const x = name();
    const worker = new Worker("/lockfile-holder.js", { type: "module" });
    await new Promise((held, failed) => { worker.onmessage = held; worker.onerror = failed; worker.postMessage(x); });
    check(await lock(x, { ifAvailable: true }) === null, "it was granted beside the worker");
    worker.terminate();
    await (await lock(x)).release();
  });
  it("twenty who ask at once hold one after the other", async () => {
    const x = name();
    let inside = 0, most = 0;
    await Promise.all(Array.from({ length: 20 }, () => locks.request(x, async () => {
      most = Math.max(most, ++inside);
      await wait(1);
      inside--;
    })));
    check(most === 1, `${most} held at once`);
  });
});

describe("unlock.test.js and release.test.js", () => {
  it("a released lock can be taken again", async () => {
    const x = name();
    for (let i = 0; i < 5; i++) {
      const one = await lock(x, { ifAvailable: true });
      check(one, "it is not free");
      await one.release();
    }
  });
  it("a second release harms nobody", async () => {
    const x = name(), one = await lock(x);
    await one.release();
    const two = await lock(x);
    await one.release();
    check(await isLocked(x), "the second release released the next holder");
    await two.release();
  });
});

describe("check.test.js", () => {
  it("a lock is there while it is held, and only then", async () => {
    const x = name();
    check(!await isLocked(x), "before");
    const one = await lock(x);
    check(await isLocked(x), "while");
    await one.release();
    check(!await isLocked(x), "after");
  });
});
