// Starts a Go runtime, in a worker or in the page.

import { compile } from "./compile";
import { problem } from "./errors";
import type { Opening, Places } from "./options";
import { pageKey } from "./page-key";
import type { Died, Runtime } from "./protocol";

/** The module, or "load-failed". */
export const loaded = (module: Promise<unknown>): Promise<unknown> => module.catch(({ message }: Error) => {
  throw problem("load-failed", `${message}; try again`);
});

/** Loads the module that runs Go in the page, unless it is loaded already: a service worker may not import() anything. */
async function page(baseURL: URL | undefined): Promise<typeof import("./page").startPage> {
  const already = (globalThis as Record<symbol, unknown>)[pageKey];
  if (already) return already as typeof import("./page").startPage;
  if ("ServiceWorkerGlobalScope" in globalThis) throw problem("unsupported", "a service worker has to import holdfast-page.js beside holdfast.js, with an import declaration");
  const module = loaded(baseURL ? import(/* @vite-ignore */ new URL("holdfast-page.js", baseURL).href) : import("./holdfast-page.js")) as Promise<typeof import("./page")>;
  return (await module).startPage;
}

/** The Wasm of a runtime. Bundlers look for this literal form. */
const wasmAt = ({ baseURL, wasmURL }: Places): string =>
  (wasmURL ?? (baseURL ? new URL("holdfast.wasm", baseURL) : new URL("./holdfast.wasm", import.meta.url))).href;

async function start(places: Places, inPage: boolean, died: Died, ended: AbortSignal): Promise<Runtime> {
  const { baseURL } = places;
  const module = compile(wasmAt(places), ended);
  if (inPage) {
    const [startPage, compiled] = await Promise.all([page(baseURL), module]);
    return startPage(compiled, baseURL, died, ended);
  }
  module.catch(died);
  const url = places.workerURL ?? (baseURL && new URL("holdfast-worker.js", baseURL));
  const worker = url ? new Worker(url, { type: "module" }) : new Worker(new URL("./holdfast-worker.js", import.meta.url), { type: "module" });
  ended.addEventListener("abort", () => worker.terminate());
  let runs = false;
  worker.addEventListener("message", () => { runs = true; }, { once: true });
  worker.onerror = (event) => {
    event.preventDefault();
    const why = event.message || "the worker could not be loaded; is holdfast-worker.js there, and does the content security policy allow it (worker-src)?";
    died(runs ? why : problem("load-failed", why));
  };
  // This module, the worker's and the Wasm arrive side by side.
  const host = loaded(baseURL ? import(/* @vite-ignore */ new URL("holdfast-host.js", baseURL).href) : import("./holdfast-host.js")) as Promise<typeof import("./host")>;
  const { startWorker } = await host;
  ended.throwIfAborted();
  return startWorker(worker, module, died, ended);
}

/** The name of the runtime for these options, and a function that starts it. */
export function runtime({ host, ...places }: Opening): [name: string, start: (died: Died, ended: AbortSignal) => Promise<Runtime>] {
  const inPage = host === "page" || typeof Worker === "undefined"; // shared workers and service workers cannot start one
  return [`${inPage} ${wasmAt(places)} ${places.workerURL}`, (died, end) => start(places, inPage, died, end)];
}
