// Compiles the Wasm in the page, also for a worker, which starts meanwhile.

import { problem, type ProjectLockError } from "./errors";

/** The Wasm on its way. `arrived` must be called with whether the whole file has arrived. */
export interface Fetching { url: string; response: Promise<Response>; arrived(whole: boolean): void }

/** The error of a file that did not arrive, with the usual remedies. */
export const notLoaded = (file: string, why: string): ProjectLockError =>
  problem("load-failed", `${file}: ${why}; if the files are elsewhere, name their folder with baseURL (Vite: optimizeDeps: { exclude: ["holdfast"] }); try again`);

/** Rejects with "load-failed" if the file did not arrive whole, and with "unsupported" if the page may not run Wasm. */
export async function compile({ url, response: fetching, arrived }: Fetching): Promise<WebAssembly.Module> {
  try {
    void new WebAssembly.Module(Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0)); // the smallest module
  } catch (error) {
    throw problem("unsupported", `WebAssembly is missing or forbidden (${error}); does the content security policy allow it (script-src 'wasm-unsafe-eval')?`);
  }
  const failed = (why: string) => (error: unknown): never => {
    arrived(false);
    throw notLoaded(url, `${why} (${error})`);
  };
  const response = await fetching.catch(failed("could not be fetched, does the content security policy allow it (connect-src)?"));
  if (!response.ok) return failed("was not delivered")(`status ${response.status}`);
  // Only this type can be compiled while it arrives. Servers that send another type make the start slower.
  const module = await (response.headers.get("Content-Type") === "application/wasm"
    ? WebAssembly.compileStreaming(response) : response.arrayBuffer().then((bytes) => WebAssembly.compile(bytes)))
    .catch(failed("cannot run, is it the whole file?"));
  arrived(true);
  return module;
}
