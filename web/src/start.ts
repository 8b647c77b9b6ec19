// Starts a Go runtime, in a worker or in the page.

import { compile } from "./compile";
import { pageKey } from "./page-key";
import type { Died, Runtime } from "./protocol";

/** Loads what runs Go in the page, unless it is loaded already: a service worker may not import() anything. */
async function page(baseURL: URL | undefined): Promise<typeof import("./page").startPage> {
  const loaded = (globalThis as Record<symbol, unknown>)[pageKey];
  if (loaded) return loaded as typeof import("./page").startPage;
  if ("ServiceWorkerGlobalScope" in globalThis) throw new Error("a service worker has to import holdfast-page.js beside holdfast.js, with an import declaration");
  const module = (baseURL ? import(/* @vite-ignore */ new URL("holdfast-page.js", baseURL).href) : import("./holdfast-page.js")) as Promise<typeof import("./page")>;
  return (await module).startPage;
}

/** The Wasm of a runtime. The literal form is what bundlers look for. */
export const wasmURL = (baseURL: URL | undefined): string => (baseURL ? new URL("holdfast.wasm", baseURL) : new URL("./holdfast.wasm", import.meta.url)).href;

export async function start(baseURL: URL | undefined, inPage: boolean, died: Died, ended: AbortSignal): Promise<Runtime> {
  const module = compile(wasmURL(baseURL), ended);
  module.catch(() => undefined); // told by whoever waits for it, and nobody does where the worker fails first
  if (inPage) {
    const [startPage, compiled] = await Promise.all([page(baseURL), module]);
    return startPage(compiled, baseURL, died, ended);
  }
  const worker = baseURL ? new Worker(new URL("holdfast-worker.js", baseURL), { type: "module" })
    : new Worker(new URL("./holdfast-worker.js", import.meta.url), { type: "module" });
  ended.addEventListener("abort", () => worker.terminate());
  worker.onerror = (event) => {
    event.preventDefault();
    died(event.message || "the worker could not be loaded; is holdfast-worker.js there, and does the content security policy allow it (worker-src)?");
  };
  // This module, the worker's and the Wasm arrive side by side.
  const host = (baseURL ? import(/* @vite-ignore */ new URL("holdfast-host.js", baseURL).href) : import("./holdfast-host.js")) as Promise<typeof import("./host")>;
  const { startWorker } = await host;
  ended.throwIfAborted();
  return startWorker(worker, module, died, ended);
}
