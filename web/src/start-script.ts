// Starts the package's workers, also where its files are of another origin than the page, or where the page requires Trusted Types.

import { trusted } from "./trusted";

/** Whether a worker may start from the URL. A sandboxed page has no origin, and no locks either: it fails as it does without this. */
const sameOrigin = (url: URL): boolean => [url.origin, "null"].includes(self.origin);

/**
 * Starts a module worker from the URL, or else the one beside this module: bundlers look for `new Worker(new URL(…))` with a literal.
 * Throws if the script is of another origin, or if the page requires Trusted Types: then startForeign can start it.
 */
export function startDirect(url: URL | undefined, beside: () => Worker): Worker {
  if (url && !sameOrigin(url)) throw url;
  return url ? new Worker(url, { type: "module" }) : beside();
}

/**
 * Starts a worker from the URL, or from the folder of the Wasm. A page may not start a worker from another origin, so a worker of the
 * page's own imports it.
 */
export function startForeign(name: string, url: URL | undefined, wasm: string): Worker {
  url ??= new URL(name, wasm);
  const script = sameOrigin(url) ? url.href : URL.createObjectURL(new Blob([`import ${JSON.stringify(url)}`], { type: "text/javascript" }));
  return new Worker(trusted(script), { type: "module" });
}

/** Starts a worker in the one way or the other. */
export function startScript(name: string, url: URL | undefined, beside: () => Worker, wasm: string): Worker {
  try {
    return startDirect(url, beside);
  } catch {
    return startForeign(name, url, wasm);
  }
}
