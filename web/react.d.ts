// Hooks for React 18 and later. A hook opens its Holdfast in an effect, and the cleanup of the effect ends it, under StrictMode too. No
// cleanup loses text. Nothing is opened on a server.

import type { AutoSave, AutoSaveOptions, AutoSaveState, Holdfast, OpenOptions, Snapshot } from "./holdfast.js";

/** The view of a component. */
export interface AutoSaveView {
  /** The AutoSave itself; undefined in the first render and on a server. */
  readonly autosave: AutoSave | undefined;
  /** Whether this page may not write now. */
  readonly readOnly: boolean;
  /** The same object until something changes. */
  readonly state: AutoSaveState;
  /** The failure to begin, for instance "unsupported"; or "read-failed" while the component is read-only because `load` has failed, with the cause. */
  readonly error?: Error & { code: string };
  /** Reports a change. */
  readonly markDirty: () => void;
}

export interface UseAutoSaveOptions extends AutoSaveOptions {
  /** Shows the content that any page has saved last. Nothing is saved until its promise settles, five seconds at most. */
  load?: (content: Uint8Array) => unknown;
}

export interface UseEditorOptions extends AutoSaveOptions {
  /** The Holdfast to use. Without this option the hook opens its own. If the option is present and undefined, the hook waits for the Holdfast. */
  holdfast?: Holdfast | undefined;
  /** The options of the Holdfast that it opens itself. */
  open?: OpenOptions;
}

/** A text that saves itself, for a controlled field. */
export interface Editor extends Omit<AutoSaveView, "markDirty"> {
  readonly text: string;
  readonly setText: (text: string) => void;
}

/** A Holdfast for as long as the component lives. It is undefined in the first render and on a server. Other options open another one. */
export function useHoldfast(options?: OpenOptions): Holdfast | undefined;

/** Saves the result of `snapshot` while the component lives. The hook calls the function of the last commit. The function may read elements: the hook
 *  calls it once more before they are removed. */
export function useAutoSave(holdfast: Holdfast | undefined, snapshot: () => Snapshot | Promise<Snapshot>, options?: UseAutoSaveOptions): AutoSaveView;

/** A text that saves itself, for a controlled `<textarea>` or `<input>`. */
export function useEditor(options?: UseEditorOptions): Editor;
