// The AutoSave object that a page gets. It exists at once, while the module that saves and the runtime are still loading. Until the
// AutoSave is ready, the handle counts the page's marks and keeps its calls waiting. Then it passes everything to the Saver.

import type * as Contract from "../holdfast";
import { deadline, inTime, loadedWithin } from "./deadline";
import "./dispose";
import type { Journal } from "./journal";
import { Listeners } from "./listeners";
import { taken, type Taken, type Taking } from "./snapshot";
import { first } from "./state";
import type { Saver } from "./wire";

/** The preview that the page shows: a generation and its text. */
export interface Shown { base: string; text: string }

export class Handle extends Listeners implements Contract.AutoSave {
  ready!: Promise<void>; // of the latest attempt to begin
  declare folder?: string; // of the page's drafts, once it is known; "" once the AutoSave is ready and keeps the text itself
  declare kept?: Journal; // keeps text that is typed before the AutoSave is ready
  #saver: Saver | undefined; // set once the AutoSave is ready
  #markCount = 0; // calls of markDirty, without those for the preview
  #hasBegun = false; // a preview comes too late
  #shown: Shown | undefined;
  take: Taking; // the page's function; start-autosave.ts replaces it by one that returns copies
  #fixedText: Taken | undefined; // the snapshot of a call that came before the AutoSave was ready; counts as the page's text until the next mark
  readonly #makeSaver: () => Promise<Saver>;
  #retryTimer: ReturnType<typeof setTimeout> | undefined; // runs until the next attempt to begin, after a failed one
  #retryDelayMs = 1000;
  readonly #givenUp = new AbortController(); // aborts when nobody waits for the AutoSave any more
  #leaving: Promise<void> | undefined; // the result of dispose() or close()
  readonly #stop: () => void; // stops the attempts to begin

  /**
   * `take` is the page's snapshot function. `make` resolves when the AutoSave is ready, and rejects when its signal aborts. It also rejects
   * if `signal` is no AbortSignal. `gone` is called when the handle ends.
   */
  constructor(take: Taking, signal: AbortSignal | undefined, make: (handle: Handle, take: Taking, givenUp: AbortSignal) => Promise<Saver>, gone: (handle: Handle) => void) {
    super();
    this.take = take;
    const abort = (): void => void this.dispose().catch(() => undefined); // text that dispose cannot save is a draft
    this.#stop = () => {
      clearTimeout(this.#retryTimer);
      signal?.removeEventListener?.("abort", abort);
      gone(this);
    };
    this.#makeSaver = () => make(this, () => this.#currentText.text, this.#givenUp.signal);
    this.#begin();
    if (signal?.aborted) abort();
    signal?.addEventListener?.("abort", abort);
  }

  /** Makes an attempt to begin. If a download fails, or the page is suspended meanwhile ("lease-lost"), another attempt follows. */
  #begin(): void {
    clearTimeout(this.#retryTimer);
    this.#retryTimer = undefined;
    this.ready = this.#makeSaver().then((saver) => {
      this.#saver = saver;
      if (this.typed) saver.markDirty();
    });
    this.ready.catch(({ code }: { code?: string }) => { // each call that waits reports the failure
      if (!["load-failed", "lease-lost"].includes(code!) || this.#leaving) return this.#stop();
      this.#fixedText = undefined; // the calls that wanted to save that text have failed
      this.#retryTimer = setTimeout(() => this.#begin(), this.#retryDelayMs);
      this.#retryDelayMs = Math.min(2 * this.#retryDelayMs, 30_000);
    });
  }

  /** The text of the page, or the text that a call has fixed. */
  get #currentText(): Taken { return this.#fixedText ?? taken(this.take); }

  /**
   * The text that the user has typed before the AutoSave was ready, or a false value if there is none. An editor may mark the preview that it
   * loads: such a text is not typed.
   */
  get typed(): Taken | false | 0 {
    return this.#markCount && ((current: Taken) => current.text !== this.#shown?.text && current)(this.#currentText);
  }

  get readOnly(): boolean { return this.#saver?.readOnly ?? true; }
  get lease(): Contract.ProjectLockLease | undefined { return this.#saver?.lease; }

  /**
   * Dispatches `autosave:preview`, at most once. It is too late if the user has typed, the AutoSave has begun, or the handle ends. Marks that
   * a listener makes during the event belong to the preview, and do not count.
   */
  preview(shown: Shown, detail: object): void {
    if (this.#markCount || this.#leaving || this.#hasBegun || this.#shown) return;
    this.#shown = shown;
    this.tell("autosave:preview", detail);
    this.#markCount = 0;
  }

  /** The AutoSave begins, and no preview comes any more. Returns the preview that the page shows. */
  begun(): Shown | undefined {
    this.#hasBegun = true;
    return this.#shown;
  }

  state(): Contract.AutoSaveState { return this.#saver?.state() ?? first; }

  markDirty(): void {
    if (!this.#leaving) this.#fixedText = void this.#markCount++;
    this.#saver?.markDirty();
  }

  flushNow(): Promise<Contract.Generation> { return this.#doWithText((saver) => saver.flushNow()); }
  history(): Promise<Contract.Generation[]> { return this.#doWhenReady((saver) => saver.history()); }
  drafts(): Promise<Contract.Draft[]> { return this.#doWhenReady((saver) => saver.drafts()); }
  resolveDraft(...args: Parameters<Saver["resolveDraft"]>): Promise<void> { return this.#doWhenReady((saver) => saver.resolveDraft(...args)); }
  pin(...args: Parameters<Saver["pin"]>): Promise<Contract.Generation> { return this.#doWhenReady((saver) => saver.pin(...args)); }
  read(id: string): Promise<Uint8Array> { return this.#doWhenReady((saver) => saver.read(id)); }
  restore(...args: Parameters<Saver["restore"]>): Promise<Uint8Array> { return this.#doWithText((saver) => saver.restore(...args)); }
  requestEdit(options?: Parameters<Saver["requestEdit"]>[0]): Promise<void> { return this.#doWhenReady((saver) => saver.requestEdit(options), options?.signal); }
  dispose(): Promise<void> { return this.leave(deadline()); }

  [Symbol.asyncDispose](): Promise<void> { return this.dispose(); }

  /** Ends the AutoSave, by the time `end`. If it is not ready yet, this waits until it is, and then saves or keeps the page's text. */
  leave(end: number): Promise<void> {
    this.end();
    return (this.#leaving ??= this.#saver ? this.#saver.leave(end) : this.#leaveBeforeReady(end)).finally(this.#stop);
  }

  async #leaveBeforeReady(end: number): Promise<void> {
    if (!this.#markCount) this.#givenUp.abort(); // there is nothing to save
    else {
      this.#fixedText = this.#currentText;
      if (this.#retryTimer) this.#begin(); // at once, not when the timer ends
    }
    try {
      await inTime(this.ready, end);
    } catch (failure) {
      if (this.#givenUp.signal.aborted) return; // nothing was typed
      this.#givenUp.abort();
      throw failure;
    }
    await this.#saver!.leave(end);
  }

  /** Makes a call that saves, as soon as the AutoSave is ready. It saves the text that the page has now. */
  #doWithText<T>(call: (saver: Saver) => Promise<T>): Promise<T> {
    const marksAtCall = this.#markCount, textAtCall = this.#fixedText = this.#saver ? this.#fixedText : this.#currentText;
    return this.#doWhenReady((saver) => {
      this.#fixedText = textAtCall; // the call takes its snapshot at once
      const result = call(saver);
      this.#fixedText = undefined; // leave() continues before this function does, and has taken its text by now
      if (this.#markCount > marksAtCall) saver.markDirty(); // the page's text has changed since
      return result;
    });
  }

  /** Makes a call as soon as the AutoSave is ready. */
  async #doWhenReady<T>(call: (saver: Saver) => Promise<T>, signal?: AbortSignal): Promise<T> {
    if (this.#retryTimer) this.#begin();
    if (!this.#saver) await loadedWithin(this.ready, 0, signal);
    return call(this.#saver!);
  }
}
