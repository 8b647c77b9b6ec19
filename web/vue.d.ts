// Composables for Vue 3. They open what they need when the component is mounted, and end it before its elements are removed; nothing is opened on
// a server, and nothing that was typed is lost.

import type { ComputedRef, Ref } from "vue";
import type { AutoSave, AutoSaveOptions, AutoSaveState, Holdfast, OpenOptions, Snapshot } from "./holdfast.js";

/** A value, a ref of it, or a function that returns it. */
export type Source<T> = T | Ref<T> | (() => T);

interface HoldfastOptions {
  /** The Holdfast to use. Without this option the composable opens its own. A ref or a function may have no Holdfast yet: the composable waits. */
  holdfast?: Source<Holdfast | undefined>;
  /** The options of the Holdfast that it opens itself. */
  open?: OpenOptions;
}

export interface UseEditorOptions extends Omit<AutoSaveOptions, "path">, HoldfastOptions {
  /** The document. When the ref or the function has another path, the text becomes that of the other document, and the former text is saved. */
  path?: Source<string[] | undefined>;
}

/** The document stays that of `path` at setup: give the component another `key` for another document. */
export interface UseAutoSaveOptions extends AutoSaveOptions, HoldfastOptions {
  /** Shows the content that any page has saved last. Nothing is saved until its promise settles, five seconds at most. */
  load?: (content: Uint8Array) => unknown;
}

/** The view of a component. */
export interface AutoSaveRefs {
  /** The AutoSave itself; undefined until the component is mounted. */
  readonly autosave: ComputedRef<AutoSave | undefined>;
  /** Whether this page may not write now. */
  readonly readOnly: ComputedRef<boolean>;
  readonly state: ComputedRef<AutoSaveState>;
  /** The failure to begin, for instance "unsupported"; or "read-failed" while the component is read-only because `load` has failed, with the cause. */
  readonly error: ComputedRef<(Error & { code: string }) | undefined>;
}

/** Saves the result of `snapshot` while the component is mounted. */
export function useAutoSave(snapshot: () => Snapshot | Promise<Snapshot>, options?: UseAutoSaveOptions): AutoSaveRefs & {
  /** Reports a change. */
  markDirty(): void;
};

/** A text that saves itself: `text` is for v-model. */
export function useEditor(options?: UseEditorOptions): AutoSaveRefs & { readonly text: Ref<string> };
