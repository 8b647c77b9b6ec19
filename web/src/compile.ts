// Fetches and compiles the Wasm. The page does it, also for a worker: meanwhile the worker
// starts.

export async function compile(url: string, signal: AbortSignal): Promise<WebAssembly.Module> {
  if (typeof WebAssembly === "undefined") throw new Error("WebAssembly is missing or switched off here");
  const response = await fetch(url, { credentials: "same-origin", signal }).catch((error: unknown) => {
    throw new Error(`${url} could not be fetched (${error}); does the content security policy allow it (connect-src)?`);
  });
  if (!response.ok) throw new Error(`${url} was answered with status ${response.status}`);
  try {
    // Only this type can be compiled while it arrives; servers that send another one are
    // slower, not wrong.
    return await (response.headers.get("Content-Type") === "application/wasm"
      ? WebAssembly.compileStreaming(response) : WebAssembly.compile(await response.arrayBuffer()));
  } catch (error) {
    throw new Error(`${url} cannot run (${error}); is it the whole file, and does the content security policy allow it (script-src 'wasm-unsafe-eval')?`);
  }
}
