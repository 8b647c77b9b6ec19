// holdfast/vue: composables that own what they open. They open it when the component is mounted, and end it before its elements go.

import { computed, onBeforeUnmount, onMounted, type Ref, shallowRef, toRaw, unref, watch } from "vue";
import type { Holdfast, OpenOptions } from "../holdfast";
import { Binding, type BindingOptions, owning, unbound } from "./binding";
import type { Taking } from "./snapshot";
import { type EditorOptions, following, noText, TextEditor } from "./text-editor";

/** A value, a ref of it, or a function that returns it. */
type Source<T> = T | Ref<T> | (() => T);

interface Given {
  holdfast?: Source<Holdfast | undefined>;
  open?: OpenOptions | undefined;
}

const valueOf = <T>(source: Source<T>): T => (typeof source === "function" ? (source as () => T)() : unref(source as T | Ref<T>));

/** The present Holdfast of the options. A proxy of Vue has no private fields. */
const givenNow = ({ holdfast, open }: Given): { holdfast?: Holdfast | undefined; open?: OpenOptions | undefined } =>
  (holdfast === undefined ? { open } : { holdfast: toRaw(valueOf(holdfast)) });

/**
 * Begins when the component is mounted, and ends before it is unmounted. Calls `update` at each change of `key`, before anything else of the
 * component changes.
 */
function whileMounted<T>(key: () => T, begin: () => { update(): void; end(): void }): void {
  let end = (): void => undefined;
  onMounted(() => {
    const begun = begin(), stop = watch(key, () => begun.update(), { flush: "sync" });
    end = () => {
      stop();
      begun.end();
    };
  });
  onBeforeUnmount(() => end());
}

/** Saves the result of `snapshot` while the component is mounted. */
export function useAutoSave(snapshot: Taking, { holdfast, open, ...options }: BindingOptions & Given = {}) {
  const view = shallowRef(unbound), given: Given = { holdfast, open };
  let binding: Binding | undefined, marked = false;
  const begin = (): () => void => owning(givenNow(given), (used) => {
    const begun = binding = new Binding(used, snapshot, options, () => { view.value = begun.view; });
    if (marked) begun.markDirty(); // before there was a Holdfast
    marked = false;
    view.value = begun.view;
    return () => {
      begun.end();
      binding = undefined;
      view.value = unbound;
    };
  });
  whileMounted(() => givenNow(given).holdfast, () => {
    let end = begin();
    return {
      update() {
        end();
        end = begin();
      },
      end: () => end(),
    };
  });
  return {
    autosave: computed(() => view.value.autosave),
    readOnly: computed(() => view.value.readOnly),
    state: computed(() => view.value.state),
    error: computed(() => view.value.error),
    markDirty: (): void => {
      if (binding) binding.markDirty();
      else marked = true;
    },
  };
}

/** A text that saves itself: `text` is for v-model. When `path` changes, it is the text of that document. */
export function useEditor({ path, holdfast, open, ...options }: Omit<BindingOptions, "load" | "path"> & Given & { path?: Source<string[] | undefined> } = {}) {
  const editor = new TextEditor();
  const view = shallowRef(noText);
  const now = (): EditorOptions => {
    const here = valueOf(path);
    return { ...options, ...givenNow({ holdfast, open }), ...(here && { path: [...here] }) };
  };
  whileMounted(now, () => {
    const forget = editor.subscribe(() => { view.value = editor.view; });
    const { update, end } = following(editor, now());
    view.value = editor.view;
    return {
      update: () => update(now()),
      end() {
        end();
        forget();
      },
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
