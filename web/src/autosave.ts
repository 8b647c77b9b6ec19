// AutoSave's part in the page. Go decides what is saved, when and under which lock. This module has the events, the
// snapshots, and the state that a page must know without asking.

import type * as Contract from "../holdfast";
import { type PageAnswers, pageAnswers } from "./page-answers";
import { notSaved } from "./autosave-error";
import type { AutoSaveError } from "./errors";
import type { Shown } from "./handle";
import { Journal } from "./journal";
import { againMs, asideMs, journalMs } from "./limits";
import { Loading } from "./loading";
import { Marks } from "./marks";
import { watch } from "./page-life";
import type { Method } from "./protocol";
import * as rescue from "./rescue";
import { type PageSnapshot, PageSnapshots } from "./page-snapshots";
import { after, encoded, pause, type Taking } from "./snapshot";
import { LastState } from "./state";
import * as openDocuments from "./open-documents";
import { consent, type EditableEvent, merged, type RawState, type Saver, type SaverEvent, type Text, type Wire } from "./wire";

export class AutoSave implements Saver {
  readonly ready: Promise<void>;
  readonly #wire: Wire;
  readonly #onReadonly: Contract.AcquireOptions["onReadonly"];
  readonly #merge: Contract.AutoSaveOptions["merge"];
  readonly #id = crypto.getRandomValues(new Uint32Array(1))[0]! + 1; // random, because copies of this module may share a runtime
  readonly #over = new AbortController(); // removes the listeners from the page
  readonly #snapshots: PageSnapshots;
  readonly #journal: Journal;
  readonly #options: object;
  readonly #state: LastState;
  readonly #marks: Marks;
  readonly #loading: Loading;
  readonly #answers: PageAnswers;
  #readOnly = true; // according to Go
  #leases = new Map<string, Contract.ProjectLockLease>();
  #leaseId = "";
  #early: (() => void)[] | undefined = []; // events for the page once it has this object
  #crashes: number | undefined; // since it began
  #asleep = false; // from pagehide until it begins again
  #waking: Promise<void> | undefined; // pending while it begins again
  #flushing: Promise<unknown> = Promise.resolve();
  #resuming: Promise<unknown> | undefined; // pending while Go verifies the lease of a page that was frozen
  #restored = { id: "", moment: "" }; // the generation that a restore made of another content, and when
  #restoring: Promise<unknown> = Promise.resolve(); // the last call that restores a content
  #disposing: Promise<void> | undefined;
  #aside: ReturnType<typeof setTimeout> | undefined;

  constructor(wire: Wire, take: Taking, { signal: ended, lock, merge, journalMs: every = journalMs, ...options }: Contract.AutoSaveOptions & { signal: AbortSignal }, shown: Shown | undefined) {
    this.#wire = wire;
    this.#state = new LastState(wire.handle.state());
    this.#merge = merge;
    this.#snapshots = new PageSnapshots(take);
    if (shown) this.#snapshots.replaced(shown.base, shown.text);
    this.#journal = new Journal(this.#snapshots, this.#id, wire.holdfast.ownerId, every, wire.journal);
    this.#marks = new Marks(this.#snapshots, () => {
      if (this.state() === this.#state.marked) this.#changed();
      this.#journal.mark();
      void this.#call("mark").catch(() => undefined);
      this.#setAsideSoon();
    });
    this.#loading = new Loading(this.#snapshots, () => {
      if (this.#snapshots.unsaved) this.#marks.again();
      this.#journal.pause(this.#asleep || this.#loading.busy);
      this.#changed();
    });
    this.#answers = pageAnswers(this.#id, wire.call, this.#snapshots, this.#journal, this.#loading, this.#marks);
    const { signal, onReadonly, within, ...fields } = { ...lock };
    this.#onReadonly = onReadonly;
    wire.savers.set(this.#id, this);
    this.#options = { ...options, merge: !!merge, onReadonly: !!onReadonly, ...(lock !== undefined && { lock: { ...fields, ...(within && { within: within.leaseId }) } }), saver: this.#id };
    this.ready = this.#open(AbortSignal.any([ended, signal ?? ended]));
  }

  async #open(signal: AbortSignal): Promise<void> {
    this.#over.signal.addEventListener("abort", this.#wire.holdfast.subscribe((event) => {
      if (event.type === "lock:acquired" || event.type === "lock:renewed") this.#leases.set(event.lease.leaseId, event.lease);
      if (event.type === "lock:readonly-entered" && event.reason === "runtime-crashed") void this.#died(event.lastError);
      if (event.type === "lock:released" || event.type === "lock:readonly-entered") this.#leases.delete(event.leaseId!);
    }));
    rescue.hold();
    try {
      await this.#begin(signal);
    } catch (failure) {
      this.#end();
      throw this.#wire.error(failure);
    }
    this.#crashes = 0;
    openDocuments.add(this, this.#journal.folder);
    watch({
      keep: () => this.#keep(),
      flush: () => { if (this.#snapshots.unsaved && !this.readOnly) this.flushNow().catch(() => undefined); },
      resume: () => { this.#resuming = this.#call("resume").catch(() => undefined); },
      suspend: () => void this.#call("suspend").catch(() => undefined), sleep: () => this.#sleep({ pendingBytes: 0 }), wake: () => void this.#wake(),
    }, this.#over.signal);
    // The page gets this object before the events of its beginning: not in a microtask, and not by a timer, which is slow in a hidden page.
    void pause().then(() => {
      const early = this.#early;
      this.#early = undefined;
      if (!this.#disposing) early?.forEach((tell) => tell());
    });
  }

  async #begin(signal?: AbortSignal): Promise<void> {
    this.#journal.folder = (await this.#wire.call("autosave", { ...this.#options, folder: this.#journal.folder, ...(this.#crashes && this.text()) }, signal) as { folder: string }).folder;
    if (this.#snapshots.news) this.#marks.again(); // Go refuses marks until it has begun
  }

  text(): Text { return { shown: this.#snapshots.baseText === undefined ? "" : this.#snapshots.base, lineage: this.#snapshots.draft, dirty: this.#snapshots.unsaved }; }
  get readOnly(): boolean { return this.#readOnly || this.#loading.busy; }
  get lease(): Contract.ProjectLockLease | undefined { return this.readOnly ? undefined : this.#leases.get(this.#leaseId); }
  state(): Contract.AutoSaveState { return this.#snapshots.news ? this.#state.marked : this.#state.now; }

  markDirty(): void {
    if (this.#disposing) return;
    this.#snapshots.mark();
    this.#marks.mark();
  }

  flushNow(): Promise<Contract.Generation> {
    const end = this.#wire.deadline(), spared = this.#spare();
    const snapshot = this.#snapshots.loading ? undefined : this.#snapshots.pin(); // an incomplete text is not saved
    const flush = async (): Promise<Contract.Generation> => {
      try {
        await this.#resuming;
        const saved = spared || await this.#call("flush", undefined, undefined, end);
        if (snapshot?.left || spared) throw this.#wire.error(notSaved);
        return saved as Contract.Generation;
      } catch (failure) {
        if (snapshot && this.#snapshots.unsaved) this.#journal.keep(snapshot);
        throw failure;
      } finally {
        this.#snapshots.unpin(snapshot);
      }
    };
    // One after the other: each resolves with the generation that contains the text at its call.
    const flushing = this.#flushing.then(flush);
    this.#flushing = flushing.catch(() => undefined);
    return flushing;
  }

  history(): Promise<Contract.Generation[]> { return this.#call("history") as Promise<Contract.Generation[]>; }
  drafts(): Promise<Contract.Draft[]> { return this.#call("drafts") as Promise<Contract.Draft[]>; }
  resolveDraft(id: string, as: "content" | "generation" | "discard"): Promise<void> { return this.#call("resolveDraft", { id, as }) as Promise<void>; }
  pin(id: string, name: string): Promise<Contract.Generation> { return this.#call("pin", { id, name }) as Promise<Contract.Generation>; }
  read(id: string): Promise<Uint8Array> { return this.#call("read", { id }) as Promise<Uint8Array>; }

  async restore(id: string, load?: (content: Uint8Array) => unknown): Promise<Uint8Array> {
    if (!this.#spare() && this.#snapshots.unsaved) this.#snapshots.fix(); // the page may show something else until the content is there
    const restored = await (this.#restoring = this.#call("restore", { id })) as Uint8Array;
    const late = this.#restored.moment !== this.#snapshots.moment;
    this.#replace(this.#restored.id, restored); // text typed meanwhile is a draft
    if (load && !this.#disposing) await this.#loading.until(this.#loading.done.then(() => this.#disposing || load(restored))); // a disposed one may show another document
    if (late) this.markDirty(); // Go may have overwritten it with the earlier text
    return restored;
  }

  async requestEdit({ signal, ...options }: { force?: boolean; graceMs?: number; signal?: AbortSignal } = {}): Promise<void> { await this.#call("edit", options, signal, Infinity); }

  leave(end: number): Promise<void> {
    if (this.#over.signal.aborted && !this.#snapshots.unsaved) return this.#disposing = Promise.resolve();
    const spared = this.#spare(), { unsaved, loading } = this.#snapshots;
    // Go may ask an editor for its text although it is saved, and the page may have emptied it by then.
    return this.#disposing ??= this.#dispose((unsaved && this.#journal.folder) || (!this.#readOnly && !loading) ? this.#snapshots.pin() : undefined, spared, end);
  }

  async #dispose(snapshot: PageSnapshot | undefined, spared: boolean, end: number): Promise<void> {
    this.#snapshots.end(snapshot);
    openDocuments.forget(this);
    this.#keep();
    try {
      await this.#call("dispose", undefined, undefined, end - 1000);
      if (spared || (snapshot && (snapshot.left || this.#snapshots.unsaved))) throw this.#wire.error(notSaved);
    } catch (failure) {
      if (snapshot && this.#snapshots.unsaved) await this.#wire.inTime(this.#journal.seal(snapshot, "closed"), end - 500).catch(() => undefined); // localStorage keeps it
      else if ((failure as AutoSaveError).code === "disposed") return; // it had not begun
      throw failure;
    } finally {
      await this.#wire.inTime(this.#journal.stop(), end).catch(() => undefined);
      void this.#call("dispose").catch(() => undefined); // it may have begun again while it ended
      this.#end();
    }
  }

  /** Calls Go, after it has received all marks. The time in which this AutoSave begins again is part of the call's time. */
  async #call(method: Method, arg?: object, signal?: AbortSignal, end = this.#wire.deadline()): Promise<unknown> {
    try {
      if (method !== "mark") {
        if (this.#asleep && this.#state.now.lastError) void this.#wake(); // an attempt has failed: at once, not later
        if (this.#waking) await this.#wire.inTime(this.#waking.catch(() => undefined), end, method, signal);
      }
      return await this.#wire.inTime(this.#wire.call(method, { ...arg, saver: this.#id, marked: this.#marks.news() }, signal, end), end, method);
    } catch (failure) {
      throw this.#wire.error(failure);
    }
  }

  #changed(): void { this.#wire.handle.changed(); }

  #setAsideSoon(): void {
    clearTimeout(this.#aside);
    if (this.#readOnly) this.#aside = setTimeout(() => void this.#setAside().catch(() => undefined), asideMs); // the journal or localStorage contains it
  }

  /** Makes a draft, which every page sees, of text that was typed in a page that may not write, unless the page edits by then. */
  async #setAside(): Promise<void> {
    if (!this.#readOnly || this.#asleep || this.#disposing || !this.#snapshots.unsaved || this.#journal.sealed?.marks === this.#snapshots.marks) return;
    await this.#journal.draft(this.#snapshots.fix(), "lock-lost");
    await this.drafts(); // Go finds it and reports it
  }

  #end(): void {
    this.#over.abort();
    clearTimeout(this.#aside);
    this.#marks.stop();
    openDocuments.forget(this);
    this.#wire.savers.delete(this.#id);
    this.#asleep = false;
    this.#readOnly = true;
    this.#changed();
  }

  heard(raw: SaverEvent): void {
    switch (raw.type) {
      case "autosave:snapshot": return void this.#answers.give(raw, this.#answers.snapshot());
      case "autosave:seal": return void this.#answers.give(raw, this.#answers.seal(raw["cause"] as string));
      case "autosave:merge": return void this.#answers.give(raw, merged(this.#merge, raw));
      case "autosave:rescue":
        this.#journal.folder = raw["folder"] as string;
        return void this.#answers.give(raw, this.#journal.merge(this.#waking !== undefined));
      case "lock:handover-requested": return void this.#answers.give(raw, consent(this.#wire, raw, this.#leases.get(this.#leaseId) ?? raw.lease as Contract.ProjectLockLease));
      case "lock:readonly-entered":
        return this.#onReadonly?.(Object.freeze({ ...raw, lastError: this.#wire.error(raw["lastError"]) }) as unknown as Contract.ProjectLockEvent);
    }
    this.#leaseId = raw.leaseId ?? this.#leaseId;
    const { draft, number, generation } = raw as { draft?: string; number?: number; generation?: Contract.Generation };
    if (generation) this.#saved(draft, number!, generation);
    this.#set(raw.state as RawState);
    if (!generation && number) this.#resolved(draft!, number);
    if (raw.type === "autosave:preview") return this.#soon(() => this.#preview(raw));
    if (raw.type === "autosave:editable") return this.#editable(raw as unknown as EditableEvent);
    this.#soon(() => {
      this.#wire.handle.tell(raw.type, this.#detail(raw)); // text may have been typed before this object was ready
      this.#changed();
    });
  }

  /** Events wait until the page has this object. */
  #soon(tell: () => void): void { void (this.#early ? this.#early.push(tell) : tell()); }

  #set({ readOnly, ...state }: RawState): void {
    if (readOnly !== undefined) this.#readOnly = readOnly;
    this.#state.set(state, ({ lastError, ...rest }: { lastError?: unknown }) => ({ ...rest, ...(lastError !== undefined && { lastError: this.#wire.error(lastError) }) }) as Contract.AutoSaveState);
  }

  #saved(draft: string | undefined, number: number, generation: Contract.Generation): void {
    if (draft === undefined) { // a content of another page
      this.#restored = { id: generation.id, moment: this.#snapshots.moment };
      this.#restoring.catch(() => this.markDirty()); // the page keeps its text
    } else if (draft === this.#snapshots.draft) { // a draft of another page has numbers of its own
      this.#snapshots.saved(number, generation.id);
      this.#journal.saved(draft, number);
    }
  }

  /** A page has decided about a draft, up to a number. If this page shows that text, it need not save it. */
  #resolved(draft: string, number: number): void {
    const { sealed } = this.#journal;
    if (sealed?.draft !== draft || sealed.number > number) return;
    this.#journal.saved(draft, number);
    if (this.#readOnly) this.#snapshots.discarded(sealed); // an editor saves its text anyway
  }

  /** Replaces the page's text. */
  #replace(base: string, bytes: Uint8Array): void {
    this.#journal.leave(() => this.drafts()); // Go finds it and reports it
    this.#snapshots.replaced(base, new TextDecoder(undefined, { ignoreBOM: true }).decode(bytes));
    this.#marks.news();
  }

  /** Shows the content that this machine knows, unless the page shows something else. */
  #preview(raw: SaverEvent): void {
    if (this.#snapshots.unsaved || this.#snapshots.base) return;
    if (this.#wire.handle.hears(raw.type)) this.#replace(raw["base"] as string ?? "", raw["content"] as Uint8Array);
    this.#wire.handle.tell(raw.type, this.#detail(raw));
  }

  /** Text typed before the editor gets the content is based on nothing: it becomes a draft at once. Returns whether there is such text. */
  #spare(): boolean {
    if (!this.#snapshots.tell()) return false;
    const { unsaved } = this.#snapshots;
    if (unsaved) this.#replace("", new Uint8Array());
    this.#snapshots.hold();
    return unsaved;
  }

  /** From now on the page has the content, and text typed from now on belongs to it. */
  #editable(raw: EditableEvent): void {
    const { content: bytes, base } = raw, early = this.#early !== undefined;
    // A page that was read-only may have shown another text in place of its own.
    const covered = bytes ? undefined : this.#snapshots.covered;
    if (covered !== undefined) raw = { ...raw, content: encoded(covered).slice() };
    if (bytes) this.#snapshots.hold();
    else if (base !== undefined && !this.#snapshots.unsaved) this.#snapshots.base = base;
    this.#readOnly = false;
    this.#soon(() => {
      this.#snapshots.tell();
      if (bytes && early && this.#snapshots.unsaved) (raw as SaverEvent)["unsaved"] ??= this.#unsaved(); // Go may not know of it
      if (bytes) this.#replace(base ?? "", bytes);
      if (!this.#disposing) this.#loading.offer(this.#detail(raw) as Contract.AutoSaveEditable, (now, later) => this.#wire.handle.tell(raw.type, now, later));
      if (this.#snapshots.unsaved) this.#marks.again();
      if (!early) void this.#answers.give(raw, this.#loading.done);
      this.#changed();
    });
    if (early) void this.#answers.give(raw, Promise.resolve()); // Go waits for this answer, which comes before the page gets this object
  }

  #detail(raw: SaverEvent): object {
    const { type, state, saver, ask, leaseId, generation, draft, error, ...detail } = raw;
    switch (type) {
      case "autosave:phase": return this.#state.now;
      case "autosave:saved": return generation as object;
      case "autosave:draft": return Object.freeze(draft as object);
      case "autosave:conflict": detail["draft"] = draft;
    }
    if (type === "autosave:readonly" && this.#snapshots.unsaved) {
      const unsaved = this.#unsaved(); // the page may show another text from now on
      detail["unsaved"] ??= unsaved;
      this.#setAsideSoon(); // it may have been marked while Go made the draft
    }
    return Object.freeze({ ...detail, ...(error && { error: this.#wire.error(error) }) });
  }

  /** Returns the unsaved text, if the page can return it synchronously. */
  #unsaved(): Uint8Array | undefined {
    const { text } = this.#snapshots.fix();
    return text === undefined || text === this.#snapshots.baseText ? undefined : encoded(text).slice(); // an editor may mark what it loads
  }

  /** Keeps unsaved text synchronously: nothing may run after this. */
  #keep(): void {
    this.#spare();
    if (this.#snapshots.unsaved) this.#journal.keep(this.#snapshots.take());
  }

  /** Applies a change of the state that does not come from Go. */
  #became(part: Partial<Contract.AutoSaveState>): void {
    this.#state.set({ ...this.#state.now, ...part });
    this.#wire.handle.tell("autosave:phase", this.#state.now);
    this.#changed();
  }

  /** The facade releases everything as the page goes into the back/forward cache. This begins again when the page comes back. */
  #sleep(part: Partial<Contract.AutoSaveState>): void {
    this.#asleep = this.#readOnly = true;
    this.#journal.pause(true, false); // another page adopts its file only if it is closed
    this.#leases.clear();
    this.#became({ phase: "readonly", ...part });
  }

  /** The page is shown, perhaps after another sleep before it was awake: earlier calls have failed, or still wait for the runtime. */
  async #wake(): Promise<void> {
    if (!this.#asleep) return;
    this.#journal.pause(true, true);
    if (this.#waking) return;
    const crashes = this.#crashes;
    try {
      await (this.#waking = this.#begin(this.#over.signal).finally(() => { this.#waking = undefined; }));
      this.#asleep = this.#crashes !== crashes;
      this.#journal.pause(false, false);
    } catch (failure) {
      const lastError = this.#wire.error(failure);
      if (this.#state.now.lastError !== lastError) { // otherwise the runtime has ended: each call rejects with the same object
        this.#became({ lastError });
        await after(againMs);
      } else if (this.#crashes === crashes) return;
    }
    await this.#wake(); // unless it is awake: the runtime may have died meanwhile
  }

  /** The runtime has died. The unsaved text is offered to the page and kept. If another runtime takes its place, this begins again. */
  async #died(lastError: Error & { code: string }): Promise<void> {
    if (this.#crashes === undefined || this.#disposing) return; // the waiting caller gets the error
    this.#crashes++;
    const unsaved = this.#snapshots.unsaved ? this.#unsaved() : undefined;
    this.#keep();
    this.#sleep({ lastError });
    this.#wire.handle.tell("autosave:readonly", Object.freeze({ reason: "runtime-crashed", error: lastError, unsaved }));
    if (this.#waking) return; // that attempt goes on
    await this.#wake();
    if (!this.#asleep) return;
    this.#end();
    addEventListener("pagehide", () => this.#keep()); // the user may type on
  }
}
