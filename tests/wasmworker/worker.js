"use strict";
// Runs program.wasm. The first message says with which arguments, and may bring the compiled module.
//
// A program that wants more workers starts them with this script and a message of the same shape: globalThis.wasmworker
// holds the module and the other fields of the message. Their messages reach their parent: ["out", text], ["err",
// text], ["exit", code] and messages of the program itself.
importScripts("wasm_exec.js");

const decoders = { 1: ["out", new TextDecoder()], 2: ["err", new TextDecoder()] };
globalThis.fs.writeSync = (fd, bytes) => {
  const [kind, decoder] = decoders[fd] ?? decoders[2];
  postMessage([kind, decoder.decode(bytes, { stream: true })]);
  return bytes.length;
};

addEventListener("message", async ({ data }) => {
  try {
    const module = data.module ?? (await WebAssembly.compileStreaming(fetch("program.wasm")));
    globalThis.wasmworker = { ...data, module };
    const go = new Go();
    let code = 0;
    go.argv = data.args;
    go.exit = (status) => { code = status; };
    await go.run(await WebAssembly.instantiate(module, go.importObject));
    postMessage(["exit", String(code)]);
  } catch (error) {
    postMessage(["failed", String(error?.stack ?? error)]);
  }
}, { once: true });
