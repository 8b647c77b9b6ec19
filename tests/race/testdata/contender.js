// A contender of the race, in a page or in a worker: it takes the project lease again and
// again and tells the witness of every step, over the network and not through the lock.
import { openHoldfast } from "/holdfast.js";

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

/** Mulberry32 by Tommy Ettinger: small, and the same everywhere. */
const generator = (seed) => () => {
  seed = (seed + 0x6d2b79f5) | 0;
  let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
};

/** Expected ends of an acquisition: an abort, and a steal at the moment of the grant. */
const expected = ["aborted", "acquire-denied"];

export async function contend({ id, host, strategy, root, seed, fault }) {
  const random = generator(seed);
  const tell = async (what, more = {}) => {
    const response = await fetch("/tell", { method: "POST", body: JSON.stringify({ client: id, what, ...more }) });
    return response.json();
  };
  const open = async (name) => {
    const hf = await openHoldfast({ host, strategy, root: name, ownerName: id });
    await hf.ready;
    return hf;
  };
  try {
    let hf = await open(root);
    const twin = fault ? await open(`${root}-twin`) : undefined;
    let steal = random() < 0.05;
    let { stop } = await tell("begin", { steal });
    while (!stop) {
      const faulty = fault && random() < 0.1 ? twin : hf; // grants what another one holds
      const limit = new AbortController();
      const timer = random() < 0.1 ? setTimeout(() => limit.abort(), random() * 60) : 0;
      try {
        const lease = await faulty.acquireProjectLock({ steal, signal: limit.signal, timeoutMs: 30_000, backoff: { maxRetries: 0 } });
        clearTimeout(timer);
        const { go } = await tell("enter", { token: lease.token });
        if (go) await sleep(random() * 4);
        steal = random() < 0.05;
        ({ stop } = await tell("leave", { steal }));
        const released = lease.release();
        if (random() < 0.8) await released;
        else await sleep(random() * 10);
      } catch (error) {
        if (error.code === "acquire-timeout") await tell("forgotten");
        else if (!expected.includes(error.code)) throw error;
        steal = random() < 0.05;
        ({ stop } = await tell("fail", { steal }));
      }
      if (random() < 0.01) {
        await hf.close();
        hf = await open(root);
      }
    }
    await hf.close();
    await twin?.close();
    await tell("done");
  } catch (error) {
    await tell("error", { why: `${error?.stack ?? error}` });
  }
}
