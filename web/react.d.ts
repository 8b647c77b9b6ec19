// Hooks for React 18 and later. They own what they open: it is opened in an effect and ended by its cleanup, under StrictMode too, and no
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
  /** Says that something has changed. */
  readonly markDirty: () => void;
}

export interface UseAutoSaveOptions extends AutoSaveOptions {
  /** Shows a content: what was saved last, by any page. Until its promise settles, at most five seconds, nothing is saved. */
  load?: (content: Uint8Array) => unknown;
}

export interface UseEditorOptions extends AutoSaveOptions {
  /** The Holdfast to use. Without this option the hook opens its own. If it is there and undefined, the hook waits for it. */
  holdfast?: Holdfast | undefined;
  /** How it opens its own. */
  open?: OpenOptions;
}

/** A text that saves itself, for a controlled field. */
export interface Editor extends Omit<AutoSaveView, "markDirty"> {
  readonly text: string;
  readonly setText: (text: string) => void;
}

/** A Holdfast for as long as the component lives. It is undefined in the first render and on a server. Other options open another one. */
export function useHoldfast(options?: OpenOptions): Holdfast | undefined;

/** Saves what `snapshot` returns for as long as the component lives. The snapshot is that of the last commit. It may read elements: before they
 *  go, it is asked once more. */
export function useAutoSave(holdfast: Holdfast | undefined, snapshot: () => Snapshot | Promise<Snapshot>, options?: UseAutoSaveOptions): AutoSaveView;

/** A text that saves itself, for a controlled `<textarea>` or `<input>`. */
export function useEditor(options?: UseEditorOptions): Editor;
