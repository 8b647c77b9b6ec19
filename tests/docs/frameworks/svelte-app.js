import { mount, unmount } from "svelte";
import Field from "./Field.svelte";
import Notes from "./Notes.svelte";

const parts = { Field, Notes };
let shown;
globalThis.show = (name) => {
  if (shown) unmount(shown);
  shown = name && mount(parts[name], { target: document.querySelector("#app") });
};
