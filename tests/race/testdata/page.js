import { contend } from "/contender.js";

const workers = new Map();

/** Starts a contender in a worker of that number, in place of the one that was there, which is ended. */
globalThis.replace = (number, options) => {
  workers.get(number)?.terminate();
  const worker = new Worker("/race-worker.js", { type: "module" });
  workers.set(number, worker);
  worker.postMessage(options);
};
globalThis.contend = (options) => void contend(options);
globalThis.loaded = true;
