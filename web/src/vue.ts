// holdfast/vue: composables that own what they open. They open it when the component is mounted, and end it before its elements go.

import { computed, onBeforeUnmount, onMounted, type Ref, shallowRef } from "vue";
import type { Holdfast } from "../holdfast";
import { Binding, type BindingOptions, type Given, owning, unbound } from "./binding";
import type { Taking } from "./snapshot";
import { noText, TextEditor } from "./text-editor";

/** Begins when the component is mounted, with the given Holdfast or its own; ends before the component is unmounted. */
function whileMounted(given: Given, begin: (holdfast: Holdfast) => () => void): void {
  let end = (): void => undefined;
  onMounted(() => { end = owning(given, begin); });
  onBeforeUnmount(() => end());
}

/** Saves the result of `snapshot` while the component is mounted. */
export function useAutoSave(snapshot: Taking, { holdfast, open, ...options }: BindingOptions & Given = {}) {
  const view = shallowRef(unbound);
  let binding: Binding | undefined;
  whileMounted({ holdfast, open }, (used) => {
    const begun = binding = new Binding(used, snapshot, options, () => { view.value = begun.view; });
    view.value = begun.view;
    return () => {
      begun.end();
      binding = undefined;
      view.value = unbound;
    };
  });
  return {
    autosave: computed(() => view.value.autosave),
    readOnly: computed(() => view.value.readOnly),
    state: computed(() => view.value.state),
    error: computed(() => view.value.error),
    markDirty: (): void => binding?.markDirty(),
  };
}

/** A text that saves itself: `text` is for v-model. */
export function useEditor({ holdfast, open, ...options }: Omit<BindingOptions, "load"> & Given = {}) {
  const editor = new TextEditor();
  const view = shallowRef(noText);
  whileMounted({ holdfast, open }, (used) => {
    const forget = editor.subscribe(() => { view.value = editor.view; });
    const end = editor.begin(used, options);
    return () => {
      end();
      forget();
    };
  });
  const text: Ref<string> = computed({ get: () => view.value.text, set: editor.setText });
  return {
    text,
    autosave: computed(() => view.value.autosave),
    readOnly: computed(() => view.value.readOnly),
    state: computed(() => view.value.state),
    error: computed(() => view.value.error),
  };
}
