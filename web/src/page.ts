// Go in the page itself, for pages that cannot have a worker's latency. The bundle of
// this module replaces setTimeout by that of page-timers.ts.

import { Files } from "../../opfs/files.js";
import { startGo } from "./go";
import { stopTimers, startTimers } from "./page-timers";
import type { Config, Host, Listener } from "./protocol";

export async function startPage(module: WebAssembly.Module, helper: string | URL, config: Config, listener: Listener, ended: AbortSignal): Promise<Host> {
  ended.throwIfAborted();
  startTimers(helper);
  // Each Holdfast has a worker of its own for files: ending it closes what a dead program had open.
  const files = new Files(() => new Worker(helper));
  ended.addEventListener("abort", () => {
    stopTimers();
    files.close();
  });
  const exports = await startGo(module, config, listener, { files, ended });
  return { call: (method, ...args) => exports[method](...args) };
}
