import start, { LoroDoc } from "loro-crdt/web";

await start();
new LoroDoc().getText("text").insert(0, "typed");
globalThis.usable();
