// Runs in the pages of the benchmark: every contender as one function lock(name, body),
// and what is measured with it.

import TabsLock from "browser-tabs-lock";
import { LockManager as Polyfill } from "navigator.locks/dist/polyfill.js";
import { atOnce } from "./at-once.js";
import { autosave } from "./autosave.js";
import { documents } from "./documents.js";
import { journal } from "./journal.js";
import { calls } from "./service.js";

const webLocks = navigator.locks; // also where removeWebLocks was called
const now = () => performance.timeOrigin + performance.now();
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

/** The Holdfast of a host and strategy; all stay open side by side. */
async function holdfast(host, strategy = "auto") {
  const { openHoldfast } = await import("/holdfast.js");
  const hf = await openHoldfast({ host, strategy, root: `bench-${host}-${strategy}` });
  await hf.ready;
  return hf;
}

/** Web Locks in a worker with nothing between: what a worker host costs at the least. */
function rawWorker() {
  const worker = new Worker("/raw-worker.js", { type: "module" });
  const calls = new Map();
  let lastId = 0;
  worker.onmessage = async ({ data: { id, granted } }) => {
    const { body, settle } = calls.get(id);
    if (granted) {
      await body();
      worker.postMessage({ id });
    } else {
      calls.delete(id);
      settle();
    }
  };
  return (name, body) => new Promise((settle) => {
    const id = ++lastId;
    calls.set(id, { body, settle });
    worker.postMessage({ id, name });
  });
}

/** Steps over a record in a file, in a worker that the page asks once for all of them. */
function recordSteps() {
  const worker = new Worker("/raw-record.js", { type: "module" });
  return { cycles: (n) => new Promise((done) => { worker.onmessage = done; worker.postMessage(n); }) };
}

/** A worker with the least of a lease on a path. */
function leastLease() {
  const worker = new Worker("/raw-lease.js", { type: "module" });
  const ask = (acquire) => new Promise((done) => { worker.onmessage = done; worker.postMessage(acquire); });
  return async (_, body) => {
    await ask(true);
    await body();
    await ask(false);
  };
}

/** The Go Locker over navigator.locks, locking in a loop of its own: no lease, and no page that is called back. */
async function goLocker(host, what) {
  const cycle = locker[host] ??= await (host === "page" ? inThisPage() : inAWorker());
  return { cycles: (n) => cycle(what, n) };
}

const locker = {};

async function inThisPage() {
  const { start } = await import("/go-locker.js");
  return start();
}

function inAWorker() {
  const worker = new Worker("/go-locker.js", { type: "module" });
  const calls = [];
  worker.onmessage = ({ data: { id } }) => calls[id]();
  return (what, n) => new Promise((done) => worker.postMessage({ id: calls.push(done) - 1, what, n }));
}

const contenders = {
  "raw": () => (name, body) => webLocks.request(name, body),
  "raw in a worker": rawWorker,
  "holdfast, page": async () => {
    const { locks } = await holdfast("page");
    return (name, body) => locks.request(name, body);
  },
  "holdfast, worker": async () => {
    const { locks } = await holdfast("worker");
    return (name, body) => locks.request(name, body);
  },
  "one step over a record": recordSteps,
  "lease, page": () => leases("page"),
  "lease, worker": () => leases("worker"),
  "file lock, worker": () => files("worker"),
  "file lock, page": () => files("page"),
  "file lease, worker": () => leases("worker", "file-lock"),
  "four raw requests, in sequence": () => inSequence,
  "four raw requests, in parallel": () => inParallel,
  "the locks and the record of a path, in plain JavaScript": leastLease,
  "path, page": () => leases("page", undefined, { path: ["u1", "a1", "r1"] }),
  "path, worker": () => leases("worker", undefined, { path: ["u1", "a1", "r1"] }),
  "slot, page": () => leases("page", undefined, { path: ["pool"], slots: 3 }),
  "slot, worker": () => leases("worker", undefined, { path: ["pool"], slots: 3 }),
  "path, Go Locker in the page": () => goLocker("page", "path"),
  "path, Go Locker in a worker": () => goLocker("worker", "path"),
  "slot, Go Locker in the page": () => goLocker("page", "slot"),
  "slot, Go Locker in a worker": () => goLocker("worker", "slot"),
  "the raw requests of a slot, in parallel": () => slotRequests,
  "the fewest raw requests of a slot, in parallel": () => fewestRequests,
  "browser-tabs-lock": () => {
    const tabsLock = new (TabsLock.default ?? TabsLock)();
    return async (name, body) => {
      if (!await tabsLock.acquireLock(name, 10_000)) throw new Error("not acquired");
      try {
        await body();
      } finally {
        await tabsLock.releaseLock(name);
      }
    };
  },
  "navigator.locks": () => {
    const polyfill = new Polyfill();
    return (name, body) => polyfill.request(name, body);
  },
};

const names = ["p", "p/u1", "p/u1/a1", "p/u1/a1/r1"];

/** Four requests, each made when the one before is granted, as an ordered acquisition has to. */
function inSequence(_, body, i = 0) {
  return i === names.length ? body()
    : navigator.locks.request(names[i], { mode: i < 3 ? "shared" : "exclusive" }, () => inSequence(_, body, i + 1));
}

/** Four requests at the same time; nobody else wants any of them. */
const inParallel = (_, body) => atOnce(names, body);

/** The locks that a slot needs: the project and the place shared, and a name of its own. */
const slotRequests = (_, body) => atOnce(["s", "s/pool", "s/pool/0"], body);

/** The fewest locks that any slot needs: its place, which another client may want as a whole, and a name of its own. */
const fewestRequests = (_, body) => atOnce(["s", "s/0"], body);

/** A project lease: events, a token and a heartbeat on top of the lock. */
async function leases(host, strategy, options) {
  const hf = await holdfast(host, strategy);
  return async (_, body) => {
    const lease = await hf.acquireProjectLock(options);
    await body();
    await lease.release();
  };
}

/** Locks over a file. In a page that has Web Locks, a lock over a file takes one of those too: see removeWebLocks. */
async function files(host) {
  const { locks } = await holdfast(host, "file-lock");
  return (name, body) => locks.request(name, body);
}

const opened = new Map();

/** One side of a cycle: holds a place and asks for the other's. */
const cycle = { hf: undefined, outer: undefined, inner: undefined, waiting: false };

async function lockOf(contender) {
  if (!opened.has(contender)) opened.set(contender, await contenders[contender]());
  return opened.get(contender);
}

globalThis.bench = {
  autosave,
  calls,
  documents,
  journal,

  async open(names) {
    for (const name of names) await lockOf(name);
  },

  /** From now on, the Holdfasts that this page opens do not know that the browser has Web Locks. */
  removeWebLocks() {
    Object.defineProperty(navigator, "locks", { value: undefined });
  },

  /** Milliseconds per cycle of lock and unlock, one after another. */
  async cycle(contender, n) {
    const lock = await lockOf(contender);
    const begun = performance.now();
    if (lock.cycles) await lock.cycles(n);
    else for (let i = 0; i < n; i++) await lock(contender, () => {});
    return (performance.now() - begun) / n;
  },

  /** Takes the lock n times and returns when each hold began and ended. */
  async hold(contender, n, holdMs) {
    const lock = await lockOf(contender);
    const holds = [];
    for (let i = 0; i < n; i++) {
      await lock(`turns of ${contender}`, async () => {
        const hold = { from: now() };
        await sleep(holdMs); // meanwhile the other tab takes its place in the queue
        hold.to = now();
        holds.push(hold);
      });
    }
    return holds;
  },

  /** Takes the lock n times, together with other tabs that begin at the same time, and returns the time of each wait. */
  async contend(contender, n, beginAt) {
    const lock = await lockOf(contender);
    await lock(`${contender} alone`, () => {});
    await sleep(beginAt - now());
    const begun = now();
    const waits = [];
    for (let i = 0; i < n; i++) {
      const asked = now();
      await lock(`crowd of ${contender}`, () => {
        waits.push(now() - asked);
        return sleep(1);
      });
    }
    return { begun, ended: now(), waits };
  },

  async nest(side) {
    cycle.hf ??= await holdfast("worker");
    cycle.outer = await cycle.hf.acquireProjectLock({ path: ["cycle", `${side}`], backoff: { maxRetries: 0 } });
  },

  /** Milliseconds until the request for the other side's place ends as a deadlock, negative where it is granted. */
  async wait(side) {
    cycle.waiting = false;
    const stop = cycle.hf.subscribe(({ type }) => { cycle.waiting ||= type === "lock:waiting"; });
    const begun = performance.now();
    cycle.inner = cycle.hf.acquireProjectLock({ path: ["cycle", `${1 - side}`], within: cycle.outer, backoff: { maxRetries: 0 } });
    const code = await cycle.inner.then(() => "granted", ({ code }) => code);
    stop();
    return code === "deadlock" ? performance.now() - begun : -1;
  },
  waits: () => cycle.waiting,
  granted: () => cycle.inner,
  async leave() {
    await (await cycle.inner.catch(() => undefined))?.release();
    await cycle.outer.release();
  },

  /** Milliseconds from the call of openHoldfast until it is ready; the facade is there. */
  async load(base, host) {
    const { openHoldfast } = await import(`${base}holdfast.js`);
    const begun = performance.now();
    const hf = await openHoldfast({ host });
    await hf.ready;
    const ms = performance.now() - begun;
    await hf.locks.request("loaded", () => {});
    return ms;
  },
};
