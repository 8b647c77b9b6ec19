// The text and the runtime that saves it: everything in the editor except its appearance.

import type { AutoSave, AutoSaveState, Draft, Generation, HolderInfo, Holdfast, WaiterInfo } from "./holdfast.js";

import type { Read, Sides } from "./decide.js";

export interface Editor {
  /** The shown and saved text. */
  text: string;
}

export interface WriterState {
  runtime: "opening" | "open" | "failed";
  failure: unknown;
  readOnly: boolean;
  asking: boolean;
  save: AutoSaveState;
  history: Generation[];
  held: HolderInfo[];
  pending: WaiterInfo[];
  /** Text of tabs that was not saved. It waits for a decision. */
  drafts: Draft[];
}

const decode = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

export class Writer {
  readonly state: WriterState = {
    runtime: "opening", failure: undefined, readOnly: true, asking: false,
    save: { phase: "awaiting-lock", pendingBytes: 0, retryCount: 0, storage: "opfs", drafts: 0 }, history: [], held: [], pending: [], drafts: [],
  };
  /** Returns whether this tab refuses other tabs that ask. */
  keep = (): boolean => false;

  readonly #editor: Editor;
  readonly #changed: () => void;
  readonly #saved: () => void;
  readonly #server: { url: string } | undefined;
  #holdfast: Holdfast | undefined;
  #autosave: AutoSave | undefined;
  #opening = Promise.resolve();
  #reading = 0; // the last time that this tab began to read the saved text, or got it to edit

  /**
   * changed is called after every change of the state, and saved when other tabs must update their view. With a
   * server, the project is shared with other machines.
   */
  constructor(editor: Editor, changed: () => void, saved: () => void, server: { url: string } | undefined) {
    this.#server = server;
    this.#editor = editor;
    this.#changed = changed;
    this.#saved = saved;
  }

  get ownerId(): string { return this.#holdfast?.ownerId ?? ""; }

  /** Opens again under this name. Openings run one after the other. */
  open(ownerName: string): Promise<void> {
    return (this.#opening = this.#opening.then(() => this.#open(ownerName)));
  }

  async #open(ownerName: string): Promise<void> {
    const before = this.#holdfast;
    this.#set({ runtime: "opening", failure: undefined, readOnly: true });
    try {
      await before?.close().catch(() => undefined); // text that cannot be saved is a draft
      // Imported on demand, so that the page can report a missing or broken module.
      const { openHoldfast } = await import("./holdfast.js");
      this.#holdfast = await openHoldfast({ ownerName, ...(this.#server && { server: this.#server }) });
      this.#holdfast.addEventListener("lock:handover-requested", (event) => {
        if (this.keep()) (event as CustomEvent<{ refuse(why: string): void }>).detail.refuse("its user wants to keep writing");
      });
      this.#autosave = await this.#holdfast.initAutoSave(() => this.#editor.text);
      this.#listen(this.#autosave);
      this.#set({ runtime: "open", readOnly: this.#autosave.readOnly, save: this.#autosave.state() });
      await this.read();
    } catch (failure) {
      this.#set({ runtime: "failed", failure });
    }
  }

  #listen(autosave: AutoSave): void {
    const follow = (): void => this.#set({ readOnly: autosave.readOnly, save: autosave.state() });
    autosave.addEventListener("autosave:phase", follow);
    autosave.addEventListener("autosave:saved", () => {
      follow();
      void this.look();
      this.#saved();
    });
    autosave.addEventListener("autosave:editable", ({ detail: { content, drafts } }) => {
      this.#reading++;
      if (content) this.#editor.text = decode(content);
      this.state.drafts = [...drafts];
      follow();
      void this.look();
      this.#saved();
    });
    autosave.addEventListener("autosave:readonly", ({ detail: { reason, error } }) => {
      follow();
      if (reason === "runtime-crashed") this.#set({ runtime: "failed", failure: error });
      void this.read();
    });
    autosave.addEventListener("autosave:draft", () => void this.look());
    autosave.addEventListener("autosave:conflict", () => void this.look());
  }

  /** The user has typed. */
  typed(): void {
    this.#autosave?.markDirty();
    if (this.#autosave) this.#set({ save: this.#autosave.state() });
  }

  /** Shows the last saved text while another tab writes. */
  async read(): Promise<void> {
    const reading = ++this.#reading;
    try {
      if (this.#autosave?.readOnly) {
        const content = decode(await this.#autosave.read("current"));
        if (this.#autosave.readOnly && reading === this.#reading) this.#editor.text = content; // otherwise the tab shows a later one
      }
    } catch {
      // Nothing is saved yet, or the history reports the error.
    }
    await this.look();
  }

  /**
   * Updates the list of tabs, the saved generations and the drafts. A part that cannot be read stays as it was. The drafts are in this browser,
   * also if the server refuses to list the generations.
   */
  async look(): Promise<void> {
    const none = (): undefined => undefined;
    const [people, history, drafts] = await Promise.all([this.#holdfast?.inspect().catch(none), this.#autosave?.history().catch(none), this.#autosave?.drafts().catch(none)]);
    this.#set({ ...people, ...(history && { history }), ...(drafts && { drafts }) });
  }

  /** Asks the writing tab to hand over. */
  async ask(force: boolean): Promise<void> {
    this.#set({ asking: true });
    try {
      await this.#autosave?.requestEdit({ force, graceMs: force ? 2000 : 5000 });
    } finally {
      this.#set({ asking: false });
    }
  }

  async flush(): Promise<void> { await this.#autosave?.flushNow(); }

  async content(id: string): Promise<string> {
    return this.#autosave ? decode(await this.#autosave.read(id)) : "";
  }

  async restore(id: string): Promise<void> {
    if (this.#autosave) this.#editor.text = decode(await this.#autosave.restore(id));
  }

  /** The three sides of a draft: the text before it, the draft, and the saved text. */
  async sides({ id, base }: Draft): Promise<Read> {
    const [mine, theirs] = await Promise.all([this.content(id), this.#savedText().catch(() => undefined)]);
    return { base: base === undefined ? "" : await this.content(base).catch(() => undefined), mine, ...(theirs !== undefined && { theirs }) };
  }

  async #savedText(): Promise<string> {
    return this.state.history.length > 0 ? this.content("current") : "";
  }

  /** Makes the draft the content, which autosave:editable brings. */
  adopt(draft: Draft): Promise<void> { return this.resolve(draft, "content"); }

  /** Merges the draft into the text, which may not be saved yet, and saves that. Then moves the draft into the history. */
  async use(draft: Draft, merged: (sides: Sides) => string): Promise<void> {
    const sides = await this.sides(draft);
    if (!this.state.readOnly) {
      this.#editor.text = merged({ ...sides, theirs: this.#editor.text });
      this.typed();
    }
    await this.flush(); // rejects if this tab may no longer write
    await this.resolve(draft, "generation");
  }

  async resolve({ id }: Draft, as: "content" | "generation" | "discard"): Promise<void> {
    await this.#autosave?.resolveDraft(id, as);
    this.#saved(); // the other tabs show the draft too
    await this.look();
  }

  #set(change: Partial<WriterState>): void {
    Object.assign(this.state, change);
    this.#changed();
  }
}
