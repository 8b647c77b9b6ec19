// The code blocks assume this page: it has an editor, and a Holdfast unless a block opens one itself. `calls` records
// the calls for the checks.
import { openHoldfast } from "./holdfast.js";

const block = new URL(import.meta.url).searchParams.get("block");
const source = await (await fetch(block)).text();

const calls = [];
const stub = (name) => [name, async (...args) => void calls.push([name, ...args])];
const editor = document.querySelector("textarea");
const button = document.querySelector("button");
Object.assign(globalThis, { calls, editor, button, content: "a text" });
Object.assign(globalThis, Object.fromEntries(["save", "edit", "move", "upload", "refresh", "stopEditing", "freezeEditor", "show", "send"].map(stub)));
if (!/\bconst holdfast\b/.test(source)) globalThis.holdfast = await openHoldfast({ ownerName: "Ann" });

try {
  await import(block);
  globalThis.outcome = "ran";
} catch (error) {
  globalThis.outcome = `${error?.stack ?? error}`;
}
