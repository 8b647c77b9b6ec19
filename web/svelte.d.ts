// An action and stores for Svelte 4 and 5. They follow the contract of stores, and do not import the package svelte. Nothing is opened on a
// server, and nothing that was typed is lost.

import type { AutoSave, AutoSaveOptions, AutoSaveState, Holdfast, OpenOptions } from "./holdfast.js";

export interface EditorOptions extends AutoSaveOptions {
  /** The Holdfast to use. Without this option the editor opens its own. If the option is present and undefined, the editor waits for the Holdfast. */
  holdfast?: Holdfast | undefined;
  /** The options of the Holdfast that it opens itself. */
  open?: OpenOptions;
}

/** The view of a component. */
export interface EditorView {
  readonly text: string;
  /** The AutoSave itself; undefined on a server and while nobody subscribes. */
  readonly autosave: AutoSave | undefined;
  /** Whether this page may not write now. */
  readonly readOnly: boolean;
  readonly state: AutoSaveState;
  /** The failure to begin, for instance "unsupported". */
  readonly error?: Error & { code: string };
}

export interface Readable<T> { subscribe(run: (value: T) => void): () => void }
export interface Writable<T> extends Readable<T> {
  set(value: T): void;
  update(change: (value: T) => T): void;
}

/** A text that saves itself while one of its stores has a subscriber: `text` is for bind:value. */
export function editorStore(options?: EditorOptions): {
  readonly text: Writable<string>;
  readonly readOnly: Readable<boolean>;
  readonly view: Readable<EditorView>;
};

/** An action: the field saves itself, and is read-only while this page may not write. */
export function autosave(field: HTMLTextAreaElement | HTMLInputElement, options?: EditorOptions): { update(options?: EditorOptions): void; destroy(): void };
