// Go in the page itself, for pages that cannot have a worker's latency. The bundle of
// this module replaces setTimeout by that of page-timers.ts.

import { startGo } from "./go";
import { stopTimers, startTimers } from "./page-timers";
import type { Config, Host, Listener } from "./protocol";

export async function startPage(module: WebAssembly.Module, timers: string | URL, config: Config, listener: Listener, ended: AbortSignal): Promise<Host> {
  ended.throwIfAborted();
  startTimers(timers);
  ended.addEventListener("abort", stopTimers);
  const exports = await startGo(module, config, listener, ended);
  return { call: (method, ...args) => exports[method](...args) };
}
