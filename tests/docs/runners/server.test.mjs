// On a server, importing the package does nothing, and every call says why it cannot work.

import assert from "node:assert/strict";
import { test } from "node:test";

const sentence = /^unsupported: this is a server; .+ browser/;
const unsupported = async (call) => {
  const error = await (async () => call())().then(() => assert.fail("it works on a server"), (failure) => failure);
  assert.equal(error.name, "ProjectLockError", error.stack);
  assert.equal(error.code, "unsupported");
  assert.match(error.message, sentence);
};

test("importing an entry does nothing", async () => {
  const before = Object.getOwnPropertyNames(globalThis).sort();
  for (const entry of ["holdfast", "holdfast/element", "holdfast/svelte", "holdfast/testing"]) {
    assert.notEqual(Object.keys(await import(entry)).length, 0, entry);
  }
  assert.deepEqual(Object.getOwnPropertyNames(globalThis).sort(), before);
});

test("opening and preloading say why they cannot work", async () => {
  const { createHoldfast, openHoldfast, preloadHoldfast } = await import("holdfast");
  for (const open of [openHoldfast, preloadHoldfast, (options) => createHoldfast(options).ready]) {
    for (const options of [undefined, { host: "page" }, { baseURL: "/files/", wasmURL: "/a.wasm", workerURL: "/w.js" }, { server: { url: "/api" } }]) {
      await unsupported(() => open(options));
    }
  }
});

test("every method of a Holdfast says why it cannot work", async () => {
  const { createHoldfast } = await import("holdfast");
  const holdfast = createHoldfast();
  for (const call of [
    () => holdfast.acquireProjectLock(), () => holdfast.withProjectLock(() => 1), () => holdfast.inspect(),
    () => holdfast.locks.request("name", () => 1), () => holdfast.locks.query(),
    () => holdfast.initAutoSave(() => ""), () => holdfast.createAutoSave(() => "").ready,
    () => holdfast.createAutoSave(() => "").flushNow(), () => holdfast.createAutoSave(() => "").history(), () => holdfast.createAutoSave(() => "").requestEdit(),
  ]) await unsupported(call);
  const autosave = holdfast.createAutoSave(() => "");
  autosave.markDirty();
  assert.equal(autosave.readOnly, true);
  assert.equal(autosave.state().phase, "awaiting-lock");
  await unsupported(() => holdfast.close()); // the text that was marked is not saved
});
