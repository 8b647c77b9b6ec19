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
  const over = new AbortController(), { signal } = over;
  const failed = (why: string) => (error: unknown): never => {
    if (!signal.aborted) arrived(false);
    throw notLoaded(url, `${why} (${error})`);
  };
  const compiled = async (response: Promise<Response>): Promise<WebAssembly.Module> => {
    const wasm = await response.catch(failed("could not be fetched, does the content security policy allow it (connect-src)?"));
    if (!wasm.ok) return failed("was not delivered")(`status ${wasm.status}`);
    // Only this type can be compiled while it arrives. Servers that send another type make the start slower.
    return (wasm.headers.get("Content-Type") === "application/wasm"
      ? WebAssembly.compileStreaming(wasm) : wasm.arrayBuffer().then((bytes) => WebAssembly.compile(bytes)))
      .catch(failed("cannot run, is it the whole file?"));
  };
  // Chromium never ends a download whose rest arrived while the page was frozen, so a page that goes on begins another one. If that fails,
  // the first one may still succeed.
  const again = new Promise<WebAssembly.Module>((done) => {
    globalThis.document?.addEventListener("resume", () => compiled(fetch(url, { credentials: "same-origin", signal })).then(done, () => undefined), { signal });
  });
  const module = await Promise.race([compiled(fetching), again]).finally(() => over.abort());
  arrived(true);
  return module;
}
