// An AutoSave for the hooks of frameworks: the view of a component is one object that never changes. This class loads
// contents and follows the saved content while the page may not write.

import type { AutoSave, AutoSaveOptions, AutoSaveState, Holdfast, OpenOptions, Snapshot } from "../holdfast";
import { createHoldfast } from "./holdfast.js";
import { first } from "./state";

/** The view of a component. The same object until something changes. */
export interface View {
  readonly autosave: AutoSave | undefined;
  readonly readOnly: boolean;
  readonly state: AutoSaveState;
  readonly error?: Error & { code: string };
}

export interface BindingOptions extends AutoSaveOptions {
  /** Shows the last saved content of any page. Until its promise settles, nothing is saved. */
  load?: (content: Uint8Array) => unknown;
}

/**
 * The Holdfast of a component, or the options of one that the component opens itself. If the option `holdfast` is present and undefined,
 * the Holdfast comes later.
 */
export interface Given {
  holdfast?: Holdfast | undefined;
  open?: OpenOptions | undefined;
}

/** Whether the component waits for its Holdfast. */
export const waits = (given: Given): boolean => "holdfast" in given && !given.holdfast;

/**
 * Begins with the given Holdfast, or opens one, unless the component waits for its Holdfast. The returned function ends what has begun, and
 * closes a Holdfast that was opened here.
 */
export function owning(given: Given, begin: (holdfast: Holdfast) => () => void): () => void {
  if (waits(given)) return () => undefined;
  const { holdfast, open } = given;
  const used = holdfast ?? createHoldfast(open);
  const end = begin(used);
  return () => {
    end();
    if (!holdfast) void used.close().catch(() => undefined); // text that cannot be saved is a draft
  };
}

/** The view before there is an AutoSave, and on a server. */
export const unbound: View = Object.freeze({
  autosave: undefined, readOnly: true, state: first,
});

export class Binding {
  readonly autosave: AutoSave;
  #view: View;
  #error: (Error & { code: string }) | undefined;
  #newest: Uint8Array | undefined; // the content that the component was given last
  #unshown: Uint8Array | undefined; // that content, if `load` has failed: what the user types would replace it
  #touched = false; // something was marked since a content was loaded
  #ended = false; // the component may show another document
  #turn = 0; // counts the contents that the component shows or asks for: only the newest one counts
  #loading: Promise<unknown> | undefined; // pending while the component loads a content
  readonly #load: BindingOptions["load"];
  readonly #changed: () => void;

  /** `changed` is called when the view changes. */
  constructor(holdfast: Holdfast, snapshot: () => Snapshot | Promise<Snapshot>, { load, ...options }: BindingOptions, changed: () => void) {
    this.#load = load;
    this.#changed = changed;
    this.autosave = holdfast.createAutoSave(snapshot, options);
    this.#view = this.#made();
    this.autosave.subscribe(this.#refresh);
    for (const type of ["autosave:editable", "autosave:readonly"]) {
      this.autosave.addEventListener(type, () => { // content whose first download failed is loaded now
        if (!this.#unshown) this.#error = undefined;
        this.#refresh();
      });
    }
    this.autosave.addEventListener("autosave:editable", ({ detail }) => {
      const content = detail.content ?? this.#unshown;
      if (content) detail.waitUntil(this.#show(content));
      if (this.#loading) detail.waitUntil(this.#loading); // a content that arrives later would replace what the user types
    });
    this.autosave.addEventListener("autosave:preview", ({ detail }) => void this.#show(detail.content));
    this.autosave.addEventListener("autosave:readonly", ({ detail }) => {
      if (!detail.unsaved) void this.#follow(); // otherwise the user sees the unsaved text, and may copy it
    });
    this.autosave.ready.then(this.#refresh, (error: Error & { code: string }) => {
      this.#error = error;
      this.#refresh();
    });
  }

  get view(): View { return this.#view; }

  markDirty(): void {
    this.#touched = true;
    this.autosave.markDirty();
  }

  /** Ends the AutoSave. It saves the page's text; text that cannot be saved is a draft. */
  end(): void {
    this.autosave.dispose().catch(() => undefined);
    this.#ended = true;
  }

  #made(): View {
    const { autosave } = this;
    return Object.freeze({ autosave, readOnly: autosave.readOnly || this.#unshown !== undefined, state: autosave.state(), ...(this.#error && { error: this.#error }) });
  }

  #refresh = (): void => {
    if (this.#ended) return;
    const { readOnly, state, error } = this.#view, now = this.#made();
    if (now.readOnly === readOnly && now.state === state && now.error === error) return;
    this.#view = now;
    this.#changed();
  };

  async #show(content: Uint8Array): Promise<void> {
    if (this.#ended) return;
    this.#touched = false;
    this.#turn++;
    this.#newest = content;
    const load = async (): Promise<void> => {
      try {
        await this.#load?.(content);
        this.#loaded(content);
      } catch (failure) {
        reportError(failure);
        this.#loaded(content, Object.assign(new Error(`read-failed: load could not show the content (${String(failure)})`, { cause: failure }), { code: "read-failed" }));
      }
    };
    const before = this.#loading, shown = load();
    const settled = shown.then(() => true, () => true);
    const overtaken = before && Promise.race([settled, before.then(() => false)]);
    const loading = this.#loading = Promise.all([overtaken, settled, before]).then(([again]) => {
      // The load of an earlier content has ended after this one: the component may show the earlier content.
      if (again && this.#loading === loading && !this.#touched && !this.#ended) return load();
      return undefined;
    }).catch(() => undefined).then(() => {
      if (this.#loading === loading) this.#loading = undefined;
    });
    await shown;
  }

  /** The component shows a content, or could not load it: then it is read-only. */
  #loaded(content: Uint8Array, error?: Error & { code: string }): void {
    if (content !== this.#newest || !(error || this.#unshown)) return;
    this.#unshown = error && content;
    this.#error = error;
    this.#refresh();
  }

  /** A page that may not write shows the saved content. */
  async #follow(): Promise<void> {
    const turn = ++this.#turn;
    const saved = await this.autosave.read("current").catch(() => undefined); // nothing may be saved yet
    if (saved && turn === this.#turn && this.autosave.readOnly && !this.#touched) await this.#show(saved);
  }
}
