// Go in the page itself, for pages that cannot afford a worker's latency. The bundle of this module replaces setTimeout
// by that of page-timers.ts.

import { Port } from "../../jsbridge/port.js";
import { Database } from "../../opfs/database.js";
import { compile, type Fetching } from "./compile";
import { Files } from "../../opfs/files.js";
import { startGo } from "./go";
import { watchHidden } from "./hidden";
import { lending } from "./lending";
import { pageKey } from "./page-key";
import { stopTimers, startTimers } from "./page-timers";
import type { Died, Host, Runtime } from "./protocol";
import { startScript } from "./start-script";

export async function startPage(wasm: Fetching, baseURL: URL | undefined, died: Died, ended: AbortSignal): Promise<Runtime> {
  ended.throwIfAborted();
  // Bundlers look for this literal form: they make a file of the worker, which a policy with worker-src 'self' admits.
  // They may inline a mere URL as data.
  const helper = (): Worker => {
    if (typeof Worker === "undefined") throw new DOMException("there are no dedicated workers here", "NotSupportedError");
    return startScript("holdfast-helper.js", baseURL && new URL("holdfast-helper.js", baseURL), () => new Worker(new URL("./holdfast-helper.js", import.meta.url)), wasm.url);
  };
  // Each program has a worker of its own for files: ending it closes what a dead program had open.
  const files = new Files(helper);
  const { journals } = files;
  const database = new Database(), port = new Port();
  watchHidden((hidden) => files.keep(!hidden), ended);
  ended.addEventListener("abort", () => {
    files.close();
    database.close();
  });
  const opens = (async () => {
    const module = await compile(wasm);
    ended.throwIfAborted();
    startTimers(helper);
    ended.addEventListener("abort", stopTimers);
    return startGo(module, died, port, { files, tables: files, writer: files, journals, database, ended });
  })();
  opens.catch(died);
  const journal: Host["journal"] = (method, ...args) => (journals[method] as (...args: unknown[]) => unknown)(...args) as never;
  return {
    journal,
    loaded: () => opens,
    open: async (...asked) => {
      const exports = await (await opens)(...asked);
      return { journal, call: (method, arg, ...rest) => lending(port, arg, (own) => exports[method](own, ...rest)) };
    },
  };
}

// A service worker may not import() this module. It imports it beside holdfast.js, and openHoldfast finds it here.
(globalThis as Record<symbol, unknown>)[pageKey] = startPage;
