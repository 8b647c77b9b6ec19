// Stands in for Go while the runtime is loading, so that the page edits at once. Decision 50 explains why.
//
//   1. preview.ts takes the document's lock (mayEdit in lend.ts) and reads the content. Then it calls early.
//   2. The stand-in dispatches `autosave:editable`. Calls that need Go wait.
//   3. When the runtime runs, Go begins. It gets the lock as a loan, and which text the page shows.
//   4. Go finds the content that the page shows: the page edits on, and gets no event. Or Go finds another content: the page is
//      read-only first, and loads it.

import type { Saved } from "../../opfs/saved.js";
import type { Loan } from "./lend";
import type { Method, RawEvent } from "./protocol";
import { after, pause } from "./snapshot";
import { first } from "./state";
import type { RawState, Saver, SaverEvent, Wire } from "./wire";

export { mayEdit, take } from "./lend";

/** The right to edit before Go runs. */
export interface Early {
  /** Returns the connection of an AutoSave that edits at once, or the given one if the right is gone. */
  wire(wire: Wire): Wire;
  /** Gives the right back: releases the lock. */
  end(): Promise<unknown>;
}

/** Takes the document's lock, as mayEdit does. Undefined if it is not free, null if the page may not edit before Go runs. */
export type Take = () => Promise<Loan | null | undefined>;

/**
 * Reads two things: what was saved last, and whether another text waits. That is a text other than the draft `own`, which Go may make
 * the content. An answer is undefined if it is not certain. With a loan, each answer takes a second at most.
 */
export type Look = (loan: unknown, own?: string) => [found: Promise<Saved | null | undefined>, otherTextWaits: Promise<boolean | undefined>];

/** The pause before the second attempt to begin, in milliseconds, and the longest pause. Each pause is twice as long as the one before. */
const firstRetryMs = 1000, longestRetryMs = 30_000;

/** A call stops waiting for Go so many milliseconds before its time limit. Then it rejects with the reason why Go has not begun. */
const marginMs = 99;

/**
 * Makes the right to edit of a page that has the lock and knows the content `found`. The right is given back if `begun` rejects: the
 * AutoSave is refused, or its module cannot be loaded. If `ended` aborts, the runtime has ended, and the loan releases its locks.
 * `take` and `look` are for a page that was suspended: it takes the lock again.
 */
export function early(loan: Loan, folder: string, found: Saved | null, ownerName: string, begun: Promise<unknown>, take: Take, look: Look, ended: AbortSignal): Early {
  let givenBack = false;
  const end = (): Promise<unknown> => {
    givenBack = true;
    return loan.release();
  };
  begun.catch(end);
  void loan.stolen.then(end);
  return { wire: (wire) => (givenBack || ended.aborted ? wire : new StandIn(wire, loan, folder, found, ownerName, take, look, ended).wire), end };
}

/** The state of an AutoSave whose page edits and has saved everything. */
const idle = { ...first, phase: "idle", readOnly: false } as RawState;

/** Answers the calls of an AutoSave in the place of Go, until Go has begun. It changes the events of Go, so that the page gets none twice. */
class StandIn {
  readonly wire: Wire;
  readonly #go: Wire;
  readonly #folder: string;
  readonly #found: Saved | null;
  readonly #take: Take;
  readonly #look: Look;
  #loan: Loan | undefined;
  #saver!: Saver;
  #binding!: readonly [id: number, folder: string, ownerId: string, ownerName: string];
  #hasUnconfirmedRight = true; // the page edits because the stand-in said so, and Go has not confirmed that yet
  #knowsReadOnly = false; // the page got autosave:readonly from the stand-in, and Go's event may repeat it
  #goCalled = false; // the call that makes Go begin was sent
  #goAnswers = false; // Go has begun, or will never begin: calls pass unchanged
  #markedMeanwhile = false; // the text has changed since Go was called
  #heldBackLeaseId: string | undefined; // of an event that the page did not get; the next event brings it
  #takeover: Promise<void> | undefined; // pending until Go has begun; rejects if it never begins
  #lastFailure: unknown; // of the last attempt to begin
  #regaining = Promise.resolve(); // pending while the page takes the lock again
  readonly #disposed = new AbortController(); // aborts when the AutoSave ends
  readonly #stop: AbortSignal; // aborts when the AutoSave or the runtime ends

  constructor(wire: Wire, loan: Loan, folder: string, found: Saved | null, ownerName: string, take: Take, look: Look, ended: AbortSignal) {
    this.#stop = AbortSignal.any([ended, this.#disposed.signal]);
    this.#go = wire;
    this.#take = take;
    this.#look = look;
    this.#folder = folder;
    this.#found = found;
    this.wire = {
      ...wire,
      call: (...args) => this.#call(...args),
      // The writer of drafts needs to know where they are. Go will say so; until then the stand-in does, before each call: after a failed
      // download there may be another writer.
      journal: ((method, ...args) => {
        if (!this.#goAnswers) (wire.journal("bind", ...this.#binding) as unknown as Promise<void>).catch(() => undefined);
        return wire.journal(method, ...args);
      }) as Wire["journal"],
      savers: {
        set: (id, saver: Saver) => {
          this.#saver = saver;
          this.#binding = [id, folder, wire.holdfast.ownerId, ownerName];
          wire.savers.set(id, { heard: (raw: RawEvent) => this.#heard(raw as SaverEvent) });
        },
        delete: (id) => {
          this.#end();
          return wire.savers.delete(id);
        },
      },
    };
    this.#hold(loan);
  }

  /** Keeps the lock, until it is stolen, or returned because the page is suspended. Then the page is read-only, and its text is a draft. */
  #hold(loan: Loan): void {
    this.#loan = loan;
    void loan.stolen.then((error) => {
      this.#loan = undefined;
      if (loan.given || this.#goAnswers) return;
      this.#saver.heard({ type: "autosave:seal", cause: "lock-lost" } as RawEvent); // other pages can read the draft while this page sleeps
      this.#loseRight("lease-lost", error);
    });
  }

  #reacquireInTurn(): void { this.#regaining = this.#regaining.then(() => this.#reacquire()).catch(() => undefined); }

  /** Takes the lock again after the page was suspended, until Go runs. The page edits again if Go would still load what the page shows. */
  async #reacquire(): Promise<void> {
    for (let delayMs = 50; !this.#loan && !this.#goCalled && !this.#stop.aborted; delayMs = Math.min(2 * delayMs, firstRetryMs)) {
      const loan = await this.#take();
      if (loan === null) return;
      if (loan) {
        this.#hold(loan); // it may be lost while the page looks
        const { shown, lineage } = this.#saver.text(), [found, waits] = this.#look(loan, lineage), saved = await found, otherTextWaits = await waits;
        const isShown = saved === undefined ? undefined : (saved?.base ?? "") === shown;
        if (this.#loan && isShown && otherTextWaits === false && !this.#stop.aborted) {
          this.#hasUnconfirmedRight = true;
          this.#knowsReadOnly = false;
          return this.#sendEditable(null);
        }
        this.#loan = undefined;
        await loan.release();
        if (isShown === false || otherTextWaits) return; // Go would load another content
      }
      await after(delayMs);
    }
  }

  /** Dispatches `autosave:editable`, with the content that the page has to load, if there is one. */
  #sendEditable(load: Saved | null): void {
    this.#saver.heard({ type: "autosave:editable", state: idle, drafts: [], base: this.#found?.base ?? "", ...(load && { content: load.content }) });
  }

  /** Answers a call of the AutoSave. A call that needs Go waits until Go has begun. */
  async #call(method: Method, arg: object, signal?: AbortSignal, end?: number): Promise<unknown> {
    if (this.#goAnswers) return this.#go.call(method, arg, signal, end);
    switch (method) {
      case "autosave":
        if (this.#goCalled || this.#stop.aborted) { // the AutoSave begins again: its runtime has died, or its page has slept
          this.#end();
          return this.#go.call(method, arg, signal, end);
        }
        if (this.#takeover) this.#reacquireInTurn(); // it begins again, and Go was not called yet
        else {
          this.#takeover = this.#takeOver(arg);
          this.#takeover.catch(() => undefined); // each waiting call reports the failure
          this.#sendEditable(this.#found);
        }
        return { folder: this.#folder };
      case "resume":
        this.#reacquireInTurn();
        break;
      case "edit":
        if (this.#hasUnconfirmedRight) return undefined; // the page edits already
        await this.#go.call("answer", {}, signal); // rejects if the download fails, so that nobody waits forever
        break;
      case "mark": return void (this.#markedMeanwhile = true);
      case "answer": return "ask" in arg && arg.ask !== undefined ? this.#go.call(method, arg) : undefined;
      case "dispose":
        if (!(this.#goCalled && this.#loan) && !this.#saver.text().dirty) {
          this.#disposed.abort(); // nothing is unsaved, and Go is not called any more, or refuses for now
          return void this.#loan?.release(); // without waiting for the writer of drafts, which may hang
        }
    }
    await this.#go.inTime(this.#takeover!, end! - marginMs, method, signal).catch((failure) => { throw signal?.aborted ? failure : this.#lastFailure ?? failure; });
    return this.#go.call(method, arg, signal, end);
  }

  /**
   * Lets Go begin once it runs. If Go refuses, this tries again: Go's storage may answer later. Rejects if Go never begins: the calls that
   * wait get the reason.
   */
  async #takeOver(options: object): Promise<void> {
    for (let delayMs = firstRetryMs; ; delayMs = Math.min(2 * delayMs, longestRetryMs)) {
      try {
        return await this.#startGo(options);
      } catch (failure) {
        this.#lastFailure = failure;
        const { code } = failure as { code?: string };
        const final = this.#stop.aborted || code === "invalid-argument";
        this.#hasUnconfirmedRight ||= !this.#saver.readOnly; // Go may have confirmed the right before it failed
        this.#loseRight(code === "lease-lost" ? code : final ? "runtime-crashed" : "acquire-failed", failure); // the page sleeps, Go has died, or Go refuses
        if (!this.#loan?.given) void this.#loan?.release(); // Go did not get it
        this.#loan = undefined; // next time, Go takes the lock itself
        this.#goAnswers = final;
        if (final) throw failure;
        await this.#waitToRetry(delayMs);
      }
    }
  }

  /** Makes one attempt to let Go begin: waits for the runtime, then calls it with the loan and the text of the page. */
  async #startGo(options: object): Promise<void> {
    await this.#untilRuntimeRuns();
    await pause();
    await pause(); // the page gets its events first: AutoSave holds them back for one pause
    await this.#regaining;
    if (this.#stop.reason instanceof DOMException) return; // the AutoSave has ended: abort() without a reason
    this.#stop.throwIfAborted(); // the runtime has ended, with an error of Holdfast
    this.#goCalled = true;
    this.#markedMeanwhile = false;
    await this.#go.call("autosave", { ...options, ...this.#saver.text(), lent: this.#loan }, this.#stop);
    if (this.#hasUnconfirmedRight && !this.#goAnswers) this.#loseRight("acquire-failed", undefined); // Go has not confirmed the right: it has the lock, and cannot read
    this.#goAnswers = true;
    if (this.#disposed.signal.aborted) void this.#go.call("dispose", { saver: this.#binding[0] }).catch(() => undefined); // the AutoSave ended while Go began
    // Go accepts marks only from now on. Marks do not count if another text has replaced the text that they were about.
    if (this.#markedMeanwhile && this.#saver.text().dirty) void this.#go.call("mark", { saver: this.#binding[0], marked: true }).catch(() => undefined);
  }

  /** Resolves when the runtime runs. A download that fails is repeated. Rejects if no runtime comes. */
  async #untilRuntimeRuns(): Promise<void> {
    for (let delayMs = firstRetryMs; !this.#disposed.signal.aborted; delayMs = Math.min(2 * delayMs, longestRetryMs)) {
      try {
        return void await this.#go.call("answer", {}); // an answer to no question: it resolves once the runtime runs
      } catch (failure) {
        this.#lastFailure = failure;
        if ((failure as { code?: string }).code !== "load-failed") throw failure;
        await this.#waitToRetry(delayMs);
      }
    }
  }

  /** Waits until the next attempt, or until the AutoSave or the runtime ends. */
  #waitToRetry(ms: number): Promise<unknown> {
    return new Promise((done) => {
      setTimeout(done, ms);
      this.#stop.addEventListener("abort", done);
    });
  }

  /** Passes an event of Go to the page, without what the page knows already. */
  #heard(raw: SaverEvent): void {
    if (!this.#goAnswers && this.#hasUnconfirmedRight) {
      const { type, content } = raw as SaverEvent & { content?: Uint8Array };
      if (type === "autosave:phase") {
        if (raw.state?.phase === "error") this.#loseRight("acquire-failed", raw.state.lastError);
        else if (raw.state?.readOnly) return;
      } else if (type === "autosave:editable" && !content) {
        return this.#confirmed(raw);
      } else if (type === "autosave:editable") this.#loseRight("acquire-failed", undefined); // the page has to load another content
      else if (type === "autosave:readonly") this.#hasUnconfirmedRight = false;
      else if (raw.state) raw = { ...raw, state: { ...raw.state, phase: "idle", readOnly: false } };
    } else if (this.#knowsReadOnly && (raw.type === "autosave:editable" || raw.type === "autosave:readonly")) {
      this.#knowsReadOnly = false;
      if (raw.type === "autosave:readonly") raw = { ...raw, type: "autosave:phase" }; // the page learns only the holder
    }
    const { leaseId = this.#heldBackLeaseId } = raw;
    this.#heldBackLeaseId = undefined;
    this.#saver.heard(leaseId ? { ...raw, leaseId } : raw);
  }

  /** Go has the lock, and has found the content that the page shows: it gets the answer that it waits for, and the page gets its next events. */
  #confirmed({ ask, leaseId }: SaverEvent): void {
    this.#hasUnconfirmedRight = false;
    this.#heldBackLeaseId = leaseId;
    void this.#go.call("answer", { ask, saver: this.#binding[0] }).catch(() => undefined);
  }

  /** Takes the right to edit from the page, and notifies it. */
  #loseRight(reason: string, error: unknown): void {
    if (this.#goAnswers || !this.#hasUnconfirmedRight) return;
    this.#hasUnconfirmedRight = false;
    this.#knowsReadOnly = true;
    this.#saver.heard({ type: "autosave:readonly", reason, ...(error !== undefined && { error }), state: { ...idle, phase: "readonly", readOnly: true } } as unknown as SaverEvent);
  }

  /** Ends the stand-in: the AutoSave has ended, or begins again with Go alone. */
  #end(): void {
    this.#goAnswers = true;
    this.#disposed.abort();
    if (!this.#loan?.given) void this.#loan?.release();
  }
}
