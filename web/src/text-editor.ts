// A text that saves itself, for the hooks of frameworks: the text is stored here, so a snapshot is always the last
// typed text.

import type { AutoSaveOptions, Holdfast } from "../holdfast";
import { Binding, type BindingOptions, type Given, owning, unbound, type View, waits } from "./binding";

/** The view of a component with a text. */
export interface TextView extends View { readonly text: string }

const decoder = /* @__PURE__ */ new TextDecoder("utf-8", { ignoreBOM: true });

export const noText: TextView = Object.freeze({ ...unbound, text: "" });

export class TextEditor {
  #binding: Binding | undefined;
  #view = noText;
  readonly #listeners = new Set<() => void>();
  #document: unknown[] | undefined;
  #typed = false; // something that no AutoSave knows yet

  get view(): TextView { return this.#view; }

  /** Calls the listener after each change of the view, until the returned function is called. */
  subscribe = (listener: () => void): (() => void) => {
    const own = (): void => listener();
    this.#listeners.add(own);
    return () => void this.#listeners.delete(own);
  };

  /** The user has typed. */
  setText = (text: string): void => {
    if (text === this.#view.text) return;
    this.#become({ text });
    if (this.#binding) this.#binding.markDirty();
    else this.#typed = true;
  };

  /** Names the document that this shows from now on. Returns whether it showed another one. */
  shows(...document: unknown[]): boolean {
    const before = this.#document;
    this.#document = document;
    return before !== undefined && before.some((part, at) => part !== document[at]);
  }

  /** Forgets the text. */
  clear(): void {
    this.#typed = false;
    this.#become({ text: "" });
  }

  /** Saves the text from now on, until the returned function is called. */
  begin(holdfast: Holdfast, options: AutoSaveOptions): () => void {
    let ended = false;
    const binding = new Binding(holdfast, () => this.#view.text, {
      ...options,
      load: (content) => { if (!ended) this.#become({ text: decoder.decode(content) }); },
    }, () => this.#become(binding.view));
    this.#binding = binding;
    if (this.#typed) binding.markDirty();
    this.#typed = false;
    this.#become(binding.view);
    return () => {
      binding.end();
      ended = true;
      if (this.#binding === binding) this.#binding = undefined;
      this.#become({ ...unbound, error: undefined });
    };
  }

  #become(part: { [name in keyof TextView]?: TextView[name] | undefined }): void {
    this.#view = Object.freeze({ ...this.#view, ...part }) as TextView;
    for (const listener of [...this.#listeners]) listener();
  }
}

/** The part of the options that identifies the document and the Holdfast; functions are always those of the last call. */
export const keyOf = (options: object | undefined): string => JSON.stringify(options, (_, value: unknown) => (value instanceof AbortSignal ? undefined : value));

export type EditorOptions = Omit<BindingOptions, "load"> & Given;

/**
 * Saves the text of the document that the options name, until `end` is called. After `update` with options of another document, the editor shows
 * that one, and the text of the former one is saved.
 */
export function following(editor: TextEditor, options: EditorOptions): { update(options: EditorOptions): void; end(): void } {
  let document: unknown[] = [], end = (): void => undefined;
  const update = (next: EditorOptions): void => {
    const { holdfast, open, ...rest } = next, now = [holdfast, keyOf([open, rest.path])];
    if (now.every((part, at) => part === document[at])) return;
    document = now;
    end();
    if (!waits(next) && editor.shows(...now)) editor.clear();
    end = owning(next, (used) => editor.begin(used, rest));
  };
  update(options);
  return { update, end: () => end() };
}
