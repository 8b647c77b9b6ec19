// Starts the package's workers, also where its files are of another origin than the page, or where the page requires Trusted Types.

import { trusted } from "./trusted";

/** Whether a worker may start from the URL. A sandboxed page has no origin, and no locks either: it fails as it does without this. */
export const sameOrigin = (url: URL): boolean => [url.origin, "null"].includes(self.origin);

/**
 * Starts a worker from the URL, or from the folder of the Wasm. A page may not start a worker from another origin, so a worker of the
 * page's own imports it.
 */
export function startForeign(name: string, url: URL | undefined, wasm: string): Worker {
  url ??= new URL(name, wasm);
  const script = sameOrigin(url) ? url.href : URL.createObjectURL(new Blob([`import ${JSON.stringify(url)}`], { type: "text/javascript" }));
  return new Worker(trusted(script), { type: "module" });
}

/** Starts a worker from the URL, or else the one beside this module: bundlers look for `new Worker(new URL(…))` with a literal. */
export function startScript(name: string, url: URL | undefined, beside: () => Worker, wasm: string): Worker {
  if (!url) {
    try {
      return beside();
    } catch { /* this module is of another origin, or the page requires Trusted Types */ }
  }
  return startForeign(name, url, wasm);
}
