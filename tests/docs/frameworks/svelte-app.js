import { mount, unmount } from "svelte";
import { autosave } from "holdfast/svelte";
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

const mounted = (part) => (target) => {
  const shown = mount(part, { target });
  return () => unmount(shown);
};

const parts = { Field: mounted(Field), Notes: mounted(Notes), Turning: turning };
let end;
globalThis.show = (name) => {
  end?.();
  end = parts[name]?.(document.querySelector("#app"));
};
