// Editors that load a content of AutoSave. Until they have loaded it, the page is read-only and nothing is saved.

import type * as Contract from "../holdfast";
import { limitMs } from "./limits";
import type { PageSnapshots } from "./page-snapshots";
import { after } from "./snapshot";

export class Loading {
  readonly #snapshots: PageSnapshots;
  readonly #changed: () => void;
  #count = 0;
  #done = Promise.resolve();

  /** `changed` is called when an editor begins to load, and when it has loaded. */
  constructor(snapshots: PageSnapshots, changed: () => void) {
    this.#snapshots = snapshots;
    this.#changed = changed;
  }

  /** Whether an editor is loading. */
  get busy(): boolean { return this.#count > 0; }

  /** Resolves when the editors that load now have loaded. */
  get done(): Promise<void> { return this.#done; }

  /**
   * Notifies listeners that the page may edit, each with `waitUntil`. `tell` gets the detail for the present listeners,
   * and makes the detail for a later listener: the content belongs to that one only while nobody has typed since.
   */
  offer(detail: Omit<Contract.AutoSaveEditable, "waitUntil">, tell: (now: object, later: () => object) => void): void {
    const { draft } = this.#snapshots;
    let late = false;
    const waitUntil = (promise: PromiseLike<unknown>): void => {
      if (this.#snapshots.draft !== draft) return; // it loads a text that the page no longer shows
      const contents = detail.content && !(late && this.#snapshots.touched) ? 1 : 0;
      void this.until(promise, contents);
    };
    const { content, unsaved, ...rest } = detail;
    tell(Object.freeze({ ...detail, waitUntil }), () => {
      const shown = this.#snapshots.draft === draft && !this.#snapshots.touched;
      return Object.freeze({ ...rest, ...(shown && content && { content }), ...(shown && unsaved && { unsaved }), waitUntil });
    });
    late = true;
  }

  /** Waits for an editor that loads so many contents: one, or none if it keeps its text. */
  until(editor: PromiseLike<unknown>, contents = 1): Promise<void> {
    return this.#done = Promise.all([this.#done, this.#wait(editor, contents)]).then(() => undefined);
  }

  async #wait(editor: PromiseLike<unknown>, contents: number): Promise<void> {
    this.#add(1, contents);
    await Promise.race([Promise.allSettled([editor]), after(limitMs)]);
    this.#add(-1, -contents);
  }

  #add(editors: number, contents: number): void {
    this.#snapshots.loading += contents;
    this.#count += editors;
    this.#changed();
  }
}
