// Runs the Go program of locker/ in the page or, as a worker, beside it. The script of Go that it
// needs is put before it.

import { Port } from "../../jsbridge/port.js";

export async function start() {
  const go = new Go();
  const { instance } = await WebAssembly.instantiateStreaming(fetch("/locker.wasm"), go.importObject);
  return new Promise((ready, failed) => {
    globalThis.benchLocker = { port: new Port(), ready };
    go.run(instance).catch(failed);
  });
}

if (typeof document === "undefined") {
  const cycle = start();
  onmessage = async ({ data: { id, what, n } }) => postMessage({ id, result: await (await cycle)(what, n) });
}
