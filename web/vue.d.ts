// Composables for Vue 3. They open what they need when the component is mounted, and end it before its elements go; nothing is opened on
// a server, and nothing that was typed is lost.

import type { ComputedRef, Ref } from "vue";
import type { AutoSave, AutoSaveOptions, AutoSaveState, Holdfast, OpenOptions, Snapshot } from "./holdfast.js";

export interface UseEditorOptions extends AutoSaveOptions {
  /** The Holdfast to use. Without one the composable opens its own. */
  holdfast?: Holdfast | undefined;
  /** How it opens its own. */
  open?: OpenOptions;
}

export interface UseAutoSaveOptions extends UseEditorOptions {
  /** Shows a content: what was saved last, by any page. Until its promise settles, at most five seconds, nothing is saved. */
  load?: (content: Uint8Array) => unknown;
}

/** The view of a component. */
export interface AutoSaveRefs {
  /** The AutoSave itself; undefined until the component is mounted. */
  readonly autosave: ComputedRef<AutoSave | undefined>;
  /** Whether this page may not write now. */
  readonly readOnly: ComputedRef<boolean>;
  readonly state: ComputedRef<AutoSaveState>;
  /** The failure to begin, for instance "unsupported". */
  readonly error: ComputedRef<(Error & { code: string }) | undefined>;
}

/** Saves what `snapshot` returns while the component is mounted. */
export function useAutoSave(snapshot: () => Snapshot | Promise<Snapshot>, options?: UseAutoSaveOptions): AutoSaveRefs & {
  /** Says that something has changed. */
  markDirty(): void;
};

/** A text that saves itself: `text` is for v-model. */
export function useEditor(options?: UseEditorOptions): AutoSaveRefs & { readonly text: Ref<string> };
