import { change, from, initializeWasm, splice } from "@automerge/automerge/slim";

await initializeWasm(fetch(new URL("automerge.wasm", import.meta.url)));
change(from({ text: "" }), (doc) => splice(doc, ["text"], 0, 0, "typed"));
globalThis.usable();
