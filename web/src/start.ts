// Starts a Go runtime, in a worker or in the page.

import type { Fetching } from "./compile";
import { within } from "./deadline";
import { problem } from "./errors";
import type { Opening, Places } from "./options";
import { pageKey } from "./page-key";
import type { Died, Runtime } from "./protocol";
import { startDirect } from "./start-script";

/** import(), with a comment for bundlers, which cannot follow it: web/build replaces the name, since a minified module has no comments. */
declare const importWithoutABundlerLooking: (url: string) => Promise<unknown>;

/** The URLs at which modules are looked for after a failure. */
const next: Record<string, string | undefined> = {};

/**
 * Loads a module of the package from baseURL, or the one beside this module: bundlers look for import() with a literal. Rejects if it takes
 * longer than 30 s. The browser goes on with that download. It asks for a URL only once: Chromium while a download hangs, and Firefox
 * also after one that failed. So every second attempt uses another URL, which may be wrong for the names of a bundler. An import map may have
 * a hash for the first URL only.
 */
export const loaded = (baseURL: URL | undefined, name: string, beside: () => Promise<unknown>): Promise<unknown> => {
  const key = baseURL + name, { href } = new URL(`holdfast-${name}.js`, baseURL ?? import.meta.url), again = next[key];
  return within(again || baseURL ? importWithoutABundlerLooking(again ?? href) : beside(), 30_000, () => ({ message: "too slow" })).catch(({ message }: Error) => {
    next[key] = again || globalThis.document?.querySelector("[type=importmap]") ? undefined : `${message.match(/http\S+$/) ?? href}?${Date.now()}`;
    throw problem("load-failed", `${message}; try again, or check baseURL`);
  });
};

/** Loads the module that runs Go in the page, unless it is loaded already: a service worker may not import() anything. */
async function page(baseURL: URL | undefined): Promise<typeof import("./page").startPage> {
  const already = (globalThis as Record<symbol, unknown>)[pageKey];
  if (already) return already as typeof import("./page").startPage;
  if ("ServiceWorkerGlobalScope" in globalThis) throw problem("unsupported", "a service worker must import holdfast-page.js");
  const module = loaded(baseURL, "page", () => import("./holdfast-page.js")) as Promise<typeof import("./page")>;
  return (await module).startPage;
}

/** The Wasm of a runtime. Bundlers look for this literal form. */
const wasmAt = ({ baseURL, wasmURL }: Places): string =>
  (wasmURL ?? (baseURL ? new URL("holdfast.wasm", baseURL) : new URL("./holdfast.wasm", import.meta.url))).href;

let cache: RequestCache = "default";

/** Fetches the Wasm. After a failure, the browser's cache may hold the broken file. */
function fetching(url: string, signal: AbortSignal): Fetching {
  const response = fetch(url, { credentials: "same-origin", signal, cache, priority: "low" });
  response.catch(() => undefined); // compile reports it
  return { url, response, arrived: (whole) => { cache = whole ? "default" : "reload"; } };
}

async function start(places: Places, inPage: boolean, died: Died, ended: AbortSignal): Promise<Runtime> {
  const { baseURL } = places;
  const at = wasmAt(places);
  // The modules come first: on a slow line, the Wasm would delay them.
  if (inPage) return (await page(baseURL))(fetching(at, ended), baseURL, died, ended);
  const url = places.workerURL ?? (baseURL && new URL("holdfast-worker.js", baseURL));
  // This module and the worker's arrive side by side.
  const host = loaded(baseURL, "host", () => import("./holdfast-host.js")) as Promise<typeof import("./host")>;
  let worker: Worker;
  try {
    worker = startDirect(url, () => new Worker(new URL("./holdfast-worker.js", import.meta.url), { type: "module" }));
  } catch {
    const { startForeign } = await host;
    ended.throwIfAborted();
    worker = startForeign("holdfast-worker.js", url, at);
  }
  ended.addEventListener("abort", () => worker.terminate());
  const broken = new Promise<string>((done) => {
    worker.onerror = (event) => {
      event.preventDefault();
      done(event.message);
    };
  });
  const { startWorker } = await host;
  ended.throwIfAborted();
  return startWorker(worker, url, broken, fetching(at, ended), died, ended);
}

/** The name of the runtime for these options, and a function that starts it. */
export function runtime({ host, ...places }: Opening): [name: string, start: (died: Died, ended: AbortSignal) => Promise<Runtime>] {
  const inPage = host === "page" || typeof Worker === "undefined"; // shared workers and service workers cannot start one
  return [`${inPage} ${wasmAt(places)} ${places.workerURL}`, (died, end) => start(places, inPage, died, end)];
}
