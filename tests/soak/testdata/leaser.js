// Takes leases again and again, of all kinds, and tells the checker of every step, over the network and not
// through the lock.
import { openHoldfast } from "/holdfast.js";
import { generator, run, sleep, start } from "/soak/common.js";

/**
 * Expected ends of an acquisition that are no fault of the lock: they are reported, and the program tries again. The
 * checker looks for waits that take too long.
 */
const expected = ["aborted", "unsupported", "web-lock-unsupported", "lease-stale", "lease-lost"];

/** One of the shapes of a lease; each of them says what it excludes. */
function draw(random, wide) {
  const n = wide ? random() : 0;
  const leaf = ["x", "y"][Math.floor(random() * 2)];
  if (n < 0.3) return { places: [{ path: [], shared: false }], ask: {} };
  if (n < 0.55) return { places: [{ path: ["a", leaf], shared: false }], ask: { path: ["a", leaf] } };
  if (n < 0.7) return { places: [{ path: ["a"], shared: true }], ask: { path: ["a"], mode: "shared" } };
  if (n < 0.8) return { places: [{ path: ["a"], shared: false }], ask: { path: ["a"] } };
  if (n < 0.88)
    return {
      places: [
        { path: ["a", leaf], shared: false },
        { path: ["b"], shared: false },
      ],
      ask: { paths: [["b"], ["a", leaf]] },
    };
  return { places: [{ path: ["s"], shared: false }], slots: 2, ask: { path: ["s"], slots: 2 } };
}

const lease = (options) =>
  run(options, async ({ id, open, wide, steals, timing, seed, fault }, tell) => {
    const random = generator(seed);
    const begin = async (root) => {
      const hf = await start(openHoldfast, { ...open, root, ownerName: id }, tell);
      const leases = new Map();
      const degraded = new Set(); // resources of leases without a record, whose tokens are read from the clock
      hf.subscribe((event) => {
        if (event.type === "lock:renewed") leases.set(event.leaseId, event.lease);
        if (event.type === "lock:warning" && event.warning === "fallback-degraded") degraded.add(event.resource);
      });
      return { hf, leases, degraded };
    };
    let world = await begin(open.root);
    const twin = fault ? await begin(`${open.root}-twin`) : undefined; // grants what somebody else holds
    for (;;) {
      const { places, slots = 0, ask } = draw(random, wide);
      const steal = steals && slots === 0 && places.length === 1 && !places[0].shared && random() < 0.05;
      if ((await tell("ask", { places, slots, steal })).stop) break;
      const { hf, leases, degraded } = twin && random() < 0.3 ? twin : world;
      const limit = new AbortController();
      const timer = random() < 0.1 ? setTimeout(() => limit.abort(), random() * 400) : 0;
      let held;
      degraded.clear();
      try {
        held = await hf.acquireProjectLock({ ...timing, ...ask, steal, signal: limit.signal, backoff: { initialDelayMs: 200, maxDelayMs: 500, maxRetries: 0 } });
      } catch (error) {
        if (!expected.includes(error.code)) throw error;
        await tell("failed", { code: error.code });
        await sleep(100 + random() * 200);
        continue;
      } finally {
        clearTimeout(timer);
      }
      const left = () => (held.signal.aborted ? -1 : (leases.get(held.leaseId) ?? held).expiresAt - Date.now());
      await tell("granted", { resource: held.resource, token: held.token, slot: held.slot ?? 0, counted: !ask.path && !ask.paths && degraded.size === 0 });
      const long = random() < 0.05 ? 1500 : 60;
      for (let steps = 1 + random() * 3; steps > 0; steps--) {
        if (!(await tell("confirm", { left: left() })).go) break;
        await sleep(random() * long);
      }
      await tell("left", { left: left(), code: held.signal.reason?.code });
      try {
        const released = held.release();
        if (random() < 0.8) await released;
        else await Promise.race([released, sleep(random() * 20)]);
        released.catch((error) => tell("note", { code: error.code }));
      } catch (error) {
        if (error.code !== "release-failed") throw error;
        await tell("note", { code: error.code });
      }
      leases.delete(held.leaseId);
      if (random() < 0.01) {
        await world.hf.close();
        world = await begin(open.root);
      }
      await sleep(random() * 30);
    }
    await world.hf.close();
    await twin?.hf.close();
  });

export { lease };
