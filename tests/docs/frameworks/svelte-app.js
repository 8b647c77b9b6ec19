import { mount, unmount } from "svelte";
import { createHoldfast, openHoldfast } from "holdfast";
import { autosave, editorStore } from "holdfast/svelte";
import Field from "./Field.svelte";
import Notes from "./Notes.svelte";

/** One field shows one document after the other: Svelte gives the action its changed options. */
function turning(target) {
  const field = target.appendChild(document.createElement("textarea"));
  const { update, destroy } = autosave(field, { path: ["turning", field.ariaLabel = "one"] });
  globalThis.turn = (page) => update({ path: ["turning", field.ariaLabel = page] });
  return () => {
    destroy();
    field.remove();
  };
}

/** The Holdfast comes later than the field. */
function later(target) {
  const field = target.appendChild(document.createElement("textarea"));
  const { update, destroy } = autosave(field, { path: ["later"], holdfast: undefined });
  globalThis.give = () => update({ path: ["later"], holdfast: globalThis.holdfast = createHoldfast({ root: "later" }) });
  return () => {
    destroy();
    field.remove();
  };
}

/** A store with two subscribers. The first one leaves twice, before the document is loaded. */
function left() {
  const { view } = editorStore({ path: ["left"] });
  const leave = view.subscribe(() => undefined);
  const end = view.subscribe((now) => { globalThis.view = now; });
  leave();
  leave();
  return end;
}

/** A field of the server's HTML, in which the user has typed `typed` before this script ran. */
function hydrated(target) {
  const field = target.appendChild(document.createElement("textarea"));
  field.value = globalThis.typed;
  const { destroy } = autosave(field, { path: ["hydrated"] });
  return () => {
    destroy();
    field.remove();
  };
}

/** A field of the server's HTML, which the browser itself has made. */
const rendered = (target) => autosave(target.querySelector("textarea"), { path: ["rendered"] }).destroy;

/** The texts of the drafts of a document. */
globalThis.drafts = async (path) => {
  const holdfast = await openHoldfast();
  const saver = await holdfast.initAutoSave(() => "", { path: [path] });
  const texts = await Promise.all((await saver.drafts()).map(async ({ id }) => new TextDecoder().decode(await saver.read(id))));
  await holdfast.close();
  return texts;
};

const mounted = (part) => (target) => {
  const shown = mount(part, { target });
  return () => unmount(shown);
};

const parts = { Field: mounted(Field), Notes: mounted(Notes), Turning: turning, Later: later, Left: left, Hydrated: hydrated, Rendered: rendered };
let end;
globalThis.show = (name) => {
  end?.();
  end = parts[name]?.(document.querySelector("#app"));
};
