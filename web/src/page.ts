// Go in the page itself, for pages that cannot have a worker's latency. The bundle of
// this module replaces setTimeout by that of page-timers.ts.

import { startGo } from "./go";
import { stopTimers, startTimers } from "./page-timers";
import type { Config, Host, Listener } from "./protocol";

export async function startPage(wasm: string, timers: string | URL, config: Config, listener: Listener): Promise<Host> {
  startTimers(timers);
  const exports = await startGo(wasm, config, listener, new Set()).catch((error: unknown) => {
    stopTimers();
    throw error;
  });
  return {
    call: (method, ...args) => exports[method](...args),
    stop: stopTimers,
  };
}
