import { edit } from "/soak/editor.js";
import { lease } from "/soak/leaser.js";

let worker;
/** Starts what this tab does; a worker takes the place of the one that was there. */
globalThis.begin = (kind, options) => {
  if (kind === "edit") void edit(options);
  else if (kind === "lease") void lease(options);
  else {
    worker?.terminate();
    worker = new Worker("/soak/worker.js", { type: "module" });
    worker.postMessage(options);
  }
};
globalThis.loaded = true;
