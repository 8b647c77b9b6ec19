// The page of notes: two documents of one Holdfast, each with the status bar of the package.

import "./element.js";

import { createHoldfast } from "./holdfast.js";
import { loadName } from "./names.js";

const holdfast = createHoldfast({ ownerName: loadName(), root: "notes" });
const decode = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

for (const field of document.querySelectorAll("textarea")) {
  const name = field.dataset["document"] ?? "";
  let turn = 0;
  const autosave = holdfast.createAutoSave(() => field.value, { path: [name] });
  autosave.addEventListener("autosave:editable", ({ detail }) => {
    turn++;
    if (detail.content) field.value = decode(detail.content);
  });
  autosave.addEventListener("autosave:readonly", ({ detail }) => {
    if (!detail.unsaved) void read();
  });
  autosave.subscribe(() => { field.readOnly = autosave.readOnly; });
  field.addEventListener("input", () => autosave.markDirty());
  const bar = document.querySelector<HTMLElementTagNameMap["holdfast-status"]>(`holdfast-status[data-document=${name}]`);
  if (bar) bar.autosave = autosave;

  /** Shows what is saved, where another tab edits. */
  const read = async (): Promise<void> => {
    const now = ++turn;
    const saved = await autosave.read("current").catch(() => undefined); // nothing may be saved yet
    if (saved && now === turn && autosave.readOnly) field.value = decode(saved);
  };
}
