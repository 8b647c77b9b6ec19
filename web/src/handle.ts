// The AutoSave object of a page, from the call that creates it on. The module that saves, and the runtime, load
// meanwhile.

import type * as Contract from "../holdfast";
import { deadline, inTime, loadedWithin } from "./deadline";
import "./dispose";
import type { Journal } from "./journal";
import { Listeners } from "./listeners";
import { taken, type Taken, type Taking } from "./snapshot";
import { first } from "./state";
import type { Saver } from "./wire";

/** A generation that the page shows before it is known who edits. */
export interface Shown { base: string; text: string }

export class Handle extends Listeners implements Contract.AutoSave {
  ready!: Promise<void>; // of the last time that it began
  declare folder?: string; // of its drafts, once that is known; "" once the AutoSave is ready, and keeps its text itself
  declare kept?: Journal; // of the text that is typed before it is ready
  #saver: Saver | undefined; // once it is ready
  #marks = 0;
  #begun = false; // no preview comes any more
  #shown: Shown | undefined;
  take: Taking; // the module that saves lets it return copies
  #fixed: Taken | undefined; // the snapshot of a call that came before it was ready; the page's text until the next mark
  readonly #make: () => Promise<Saver>;
  #retry: ReturnType<typeof setTimeout> | undefined; // set after the modules could not be loaded
  #retryMs = 1000;
  readonly #given = new AbortController(); // aborts when nobody waits for it any more
  #leaving: Promise<void> | undefined;
  readonly #ended: () => void;

  /** `make` resolves when the AutoSave is ready, or rejects when its signal aborts. It refuses what is no signal. `gone` is called when this ends. */
  constructor(take: Taking, signal: AbortSignal | undefined, make: (handle: Handle, take: Taking, given: AbortSignal) => Promise<Saver>, gone: (handle: Handle) => void) {
    super();
    this.take = take;
    const abort = (): void => void this.dispose().catch(() => undefined); // its text is a draft
    this.#ended = () => {
      clearTimeout(this.#retry);
      signal?.removeEventListener?.("abort", abort);
      gone(this);
    };
    this.#make = () => make(this, () => this.#now.text, this.#given.signal);
    this.#begin();
    if (signal?.aborted) abort();
    signal?.addEventListener?.("abort", abort);
  }

  /** Begins, and begins again after a failed download, or if the page slept meanwhile ("lease-lost"). */
  #begin(): void {
    clearTimeout(this.#retry);
    this.#retry = undefined;
    this.ready = this.#make().then((saver) => {
      this.#saver = saver;
      if (this.typed) saver.markDirty();
    });
    this.ready.catch(({ code }: { code?: string }) => { // every call reports it
      if (!["load-failed", "lease-lost"].includes(code!) || this.#leaving) return this.#ended();
      this.#fixed = undefined; // the calls that were to save that text have failed
      this.#retry = setTimeout(() => this.#begin(), this.#retryMs);
      this.#retryMs = Math.min(2 * this.#retryMs, 30_000);
    });
  }

  /** The text of the page, or the one that a call has fixed. */
  get #now(): Taken { return this.#fixed ?? taken(this.take); }

  /** The text that the page has typed before its AutoSave was ready, or when it ended it. An editor may mark the preview that it loads. */
  get typed(): Taken | false | 0 {
    return this.#marks && ((now: Taken) => now.text !== this.#shown?.text && now)(this.#now);
  }

  get readOnly(): boolean { return this.#saver?.readOnly ?? true; }
  get lease(): Contract.ProjectLockLease | undefined { return this.#saver?.lease; }

  /**
   * Dispatches `autosave:preview` once, unless the user has typed, the page ends, or its AutoSave has begun. Marks that come
   * with the event belong to the preview.
   */
  preview(shown: Shown, detail: object): void {
    if (this.#marks || this.#leaving || this.#begun || this.#shown) return;
    this.#shown = shown;
    this.tell("autosave:preview", detail);
    this.#marks = 0;
  }

  /** Returns the preview that the page shows as its AutoSave begins. */
  begun(): Shown | undefined {
    this.#begun = true;
    return this.#shown;
  }

  state(): Contract.AutoSaveState { return this.#saver?.state() ?? first; }

  markDirty(): void {
    if (!this.#leaving) this.#fixed = void this.#marks++;
    this.#saver?.markDirty();
  }

  flushNow(): Promise<Contract.Generation> { return this.#doNow((saver) => saver.flushNow()); }
  history(): Promise<Contract.Generation[]> { return this.#do((saver) => saver.history()); }
  drafts(): Promise<Contract.Draft[]> { return this.#do((saver) => saver.drafts()); }
  resolveDraft(...args: Parameters<Saver["resolveDraft"]>): Promise<void> { return this.#do((saver) => saver.resolveDraft(...args)); }
  pin(...args: Parameters<Saver["pin"]>): Promise<Contract.Generation> { return this.#do((saver) => saver.pin(...args)); }
  read(id: string): Promise<Uint8Array> { return this.#do((saver) => saver.read(id)); }
  restore(...args: Parameters<Saver["restore"]>): Promise<Uint8Array> { return this.#doNow((saver) => saver.restore(...args)); }
  requestEdit(options?: Parameters<Saver["requestEdit"]>[0]): Promise<void> { return this.#do((saver) => saver.requestEdit(options), options?.signal); }
  dispose(): Promise<void> { return this.leave(deadline()); }

  [Symbol.asyncDispose](): Promise<void> { return this.dispose(); }

  /** Ends it by that time. Before it is ready, the page's text is saved or kept once it is ready. */
  leave(end: number): Promise<void> {
    this.end();
    return (this.#leaving ??= this.#saver ? this.#saver.leave(end) : this.#leave(end)).finally(this.#ended);
  }

  async #leave(end: number): Promise<void> {
    if (!this.#marks) this.#given.abort();
    else {
      this.#fixed = this.#now;
      if (this.#retry) this.#begin();
    }
    try {
      await inTime(this.ready, end);
    } catch (failure) {
      if (this.#given.signal.aborted) return; // nothing was typed
      this.#given.abort();
      throw failure;
    }
    await this.#saver!.leave(end);
  }

  /** Calls the AutoSave as soon as it is ready, with the text that the page has now. */
  #doNow<T>(call: (saver: Saver) => Promise<T>): Promise<T> {
    const marks = this.#marks, fixed = this.#fixed = this.#saver ? this.#fixed : this.#now;
    return this.#do((saver) => {
      this.#fixed = fixed;
      const calling = call(saver);
      this.#fixed = undefined; // leave() goes on before this function, and has taken its text by now
      if (this.#marks > marks) saver.markDirty(); // the page's text has changed since
      return calling;
    });
  }

  /** Calls the AutoSave as soon as it is ready. */
  async #do<T>(call: (saver: Saver) => Promise<T>, signal?: AbortSignal): Promise<T> {
    if (this.#retry) this.#begin();
    if (!this.#saver) await loadedWithin(this.ready, 0, signal);
    return call(this.#saver!);
  }
}
