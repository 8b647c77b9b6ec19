// Fetches and compiles the Wasm. The page does this, also for a worker, which starts meanwhile.

import { problem } from "./errors";

/** After a failure, the browser's cache may hold the broken file. */
let cache: RequestCache = "default";

/** Rejects with "load-failed" if the file did not arrive whole, and with "unsupported" if the page may not run Wasm. */
export async function compile(url: string, signal: AbortSignal): Promise<WebAssembly.Module> {
  try {
    void new WebAssembly.Module(Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0)); // the smallest module
  } catch (error) {
    throw problem("unsupported", `WebAssembly is missing or forbidden (${error}); does the content security policy allow it (script-src 'wasm-unsafe-eval')?`);
  }
  const failed = (why: string) => (error: unknown): never => {
    cache = "reload";
    throw problem("load-failed", `${url} ${why} (${error}); try again`);
  };
  const response = await fetch(url, { credentials: "same-origin", signal, cache }).catch(failed("could not be fetched, does the content security policy allow it (connect-src)?"));
  if (!response.ok) return failed("was not delivered")(`status ${response.status}`);
  // Only this type can be compiled while it arrives. Servers that send another type make the start slower.
  const module = await (response.headers.get("Content-Type") === "application/wasm"
    ? WebAssembly.compileStreaming(response) : response.arrayBuffer().then((bytes) => WebAssembly.compile(bytes)))
    .catch(failed("cannot run, is it the whole file?"));
  cache = "default";
  return module;
}
