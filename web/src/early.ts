// Stands in for Go while the runtime is loading: the page edits, and Go takes over the lock, the document and the journal.

import type { Saved } from "../../opfs/saved.js";
import type { Loan } from "./lend";
import type { Method, RawEvent } from "./protocol";
import { after, pause } from "./snapshot";
import { first } from "./state";
import type { RawState, Saver, SaverEvent, Wire } from "./wire";

export { mayEdit, take } from "./lend";

/** The right to edit before Go runs. */
export interface Early {
  /** The connection of an AutoSave that edits at once. */
  wire(wire: Wire): Wire;
  /** Gives the right back. */
  end(): Promise<unknown>;
}

/** Takes the document's lock, as mayEdit does. Null if the page may not edit before Go runs. */
export type Take = () => Promise<Loan | null | undefined>;

/**
 * Reads two things: what was saved last, and whether a text other than the draft `own` waits that Go may make the content. An answer is
 * undefined if it is not certain. A page that holds the lock waits for them for a second at most.
 */
export type Look = (loan: unknown, own?: string) => [found: Promise<Saved | null | undefined>, waits: Promise<boolean | undefined>];

/** The time until the next attempt to load the runtime, and the longest one, in milliseconds. */
const retryMs = 1000, mostMs = 30_000;

/** A call that waits for Go ends this much before its time limit, so that it rejects with the reason why Go has not begun. */
const soonerMs = 99;

/**
 * The right is given back if `begun` rejects: the AutoSave is refused, or its module cannot be loaded. `take` and `look` are for its return
 * after a sleep. All locks are released if `ended` aborts: then the runtime has ended, and Go alone knows who edits.
 */
export function early(loan: Loan, folder: string, found: Saved | null, ownerName: string, begun: Promise<unknown>, take: Take, look: Look, ended: AbortSignal): Early {
  let over = false;
  const end = (): Promise<unknown> => {
    over = true;
    return loan.release();
  };
  begun.catch(end);
  void loan.stolen.then(end);
  return { wire: (wire) => (over || ended.aborted ? wire : new StandIn(wire, loan, folder, found, ownerName, take, look, ended).wire), end };
}

const state = { ...first, phase: "idle", readOnly: false } as RawState;

/** Answers an AutoSave in the place of Go, until Go has begun. */
class StandIn {
  readonly wire: Wire;
  readonly #go: Wire;
  readonly #folder: string;
  readonly #found: Saved | null;
  readonly #take: Take;
  readonly #look: Look;
  #loan: Loan | undefined;
  #saver!: Saver;
  #bound!: readonly [id: number, folder: string, ownerId: string, ownerName: string];
  #promised = true; // the last event says that the page may edit
  #knowsReadOnly = false; // the page knows already that it is read-only
  #called = false; // Go begins
  #over = false; // Go answers by itself
  #marked = false; // since Go was called
  #leaseId: string | undefined; // for the next event: the page does not get the one that brought it
  #begun: Promise<void> | undefined; // pending until Go has decided; rejects if it cannot
  #refused: unknown; // why the last attempt has failed
  #regained = Promise.resolve(); // pending while the page asks for the lock again
  readonly #ended = new AbortController();
  readonly #stop: AbortSignal; // the AutoSave or the runtime has ended

  constructor(wire: Wire, loan: Loan, folder: string, found: Saved | null, ownerName: string, take: Take, look: Look, ended: AbortSignal) {
    this.#stop = AbortSignal.any([ended, this.#ended.signal]);
    this.#go = wire;
    this.#take = take;
    this.#look = look;
    this.#folder = folder;
    this.#found = found;
    this.wire = {
      ...wire,
      call: (...asked) => this.#call(...asked),
      // The writer of drafts learns from Go where they are; until then, from here. It may be another one after a failed download.
      journal: ((method, ...args) => {
        if (!this.#over) (wire.journal("bind", ...this.#bound) as unknown as Promise<void>).catch(() => undefined);
        return wire.journal(method, ...args);
      }) as Wire["journal"],
      savers: {
        set: (id, saver: Saver) => {
          this.#saver = saver;
          this.#bound = [id, folder, wire.holdfast.ownerId, ownerName];
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

  /** The lock may be stolen. The page gives it back when the page enters the back/forward cache. */
  #hold(loan: Loan): void {
    this.#loan = loan;
    void loan.stolen.then((error) => {
      this.#loan = undefined;
      if (loan.given || this.#over) return;
      this.#saver.heard({ type: "autosave:seal", cause: "lock-lost" } as RawEvent); // others read it while this page sleeps
      this.#lose("lease-lost", error);
    });
  }

  #goOn(): void { this.#regained = this.#regained.then(() => this.#regain()).catch(() => undefined); }

  /** Asks for the lock as the page goes on after a sleep, until Go runs. It edits again if Go would still load what it shows. */
  async #regain(): Promise<void> {
    for (let again = 50; !this.#loan && !this.#called && !this.#stop.aborted; again = Math.min(2 * again, retryMs)) {
      const loan = await this.#take();
      if (loan === null) return;
      if (loan) {
        this.#hold(loan); // it may be lost while the page looks
        const { shown, lineage } = this.#saver.text(), [found, waits] = this.#look(loan, lineage), saved = await found, unsaved = await waits;
        const same = saved === undefined ? undefined : (saved?.base ?? "") === shown;
        if (this.#loan && same && unsaved === false && !this.#stop.aborted) {
          this.#promised = true;
          this.#knowsReadOnly = false;
          return this.#editable(null);
        }
        this.#loan = undefined;
        await loan.release();
        if (same === false || unsaved) return;
      }
      await after(again);
    }
  }

  #editable(shows: Saved | null): void {
    this.#saver.heard({ type: "autosave:editable", state, drafts: [], base: this.#found?.base ?? "", ...(shows && { content: shows.content }) });
  }

  async #call(method: Method, arg: object, signal?: AbortSignal, end?: number): Promise<unknown> {
    if (this.#over) return this.#go.call(method, arg, signal, end);
    switch (method) {
      case "autosave":
        if (this.#called || this.#stop.aborted) { // the runtime has died, or the page has slept
          this.#end();
          return this.#go.call(method, arg, signal, end);
        }
        if (this.#begun) this.#goOn();
        else {
          this.#begun = this.#takeOver(arg);
          this.#begun.catch(() => undefined); // each waiting call reports it
          this.#editable(this.#found);
        }
        return { folder: this.#folder };
      case "resume":
        this.#goOn();
        break;
      case "edit":
        if (this.#promised) return undefined;
        await this.#go.call("answer", {}, signal); // rejects if the download fails: nobody waits forever
        break;
      case "mark": return void (this.#marked = true);
      case "answer": return "ask" in arg && arg.ask !== undefined ? this.#go.call(method, arg) : undefined;
      case "dispose":
        if (!(this.#called && this.#loan) && !this.#saver.text().dirty) {
          this.#ended.abort(); // Go is not called any more, or refuses for now
          return void this.#loan?.release(); // the writer of drafts may hang
        }
    }
    await this.#go.inTime(this.#begun!, end! - soonerMs, method, signal).catch((failure) => { throw signal?.aborted ? failure : this.#refused ?? failure; });
    return this.#go.call(method, arg, signal, end);
  }

  /** Lets Go begin once it runs, and again if Go refuses: its storage may answer later. Rejects if Go cannot: the calls that wait get the reason. */
  async #takeOver(options: object): Promise<void> {
    for (let again = retryMs; ; again = Math.min(2 * again, mostMs)) {
      try {
        return await this.#lend(options);
      } catch (failure) {
        this.#refused = failure;
        const { code } = failure as { code?: string };
        const over = this.#stop.aborted || code === "invalid-argument";
        this.#promised ||= !this.#saver.readOnly; // Go may have adopted what the page shows
        this.#lose(code === "lease-lost" ? code : over ? "runtime-crashed" : "acquire-failed", failure); // the page sleeps, Go has died, or Go refuses
        if (!this.#loan?.given) void this.#loan?.release(); // Go did not get the call
        this.#loan = undefined; // Go takes another lock itself
        this.#over = over;
        if (over) throw failure;
        await this.#pause(again);
      }
    }
  }

  /** Lets Go begin once. */
  async #lend(options: object): Promise<void> {
    await this.#loaded();
    await pause();
    await pause(); // the page gets the content first: see AutoSave
    await this.#regained;
    if (this.#stop.reason instanceof DOMException) return; // the AutoSave has ended
    this.#stop.throwIfAborted(); // the runtime has ended
    this.#called = true;
    this.#marked = false;
    await this.#go.call("autosave", { ...options, ...this.#saver.text(), lent: this.#loan }, this.#stop);
    if (this.#promised && !this.#over) this.#lose("acquire-failed", undefined); // it has the lock, and cannot read
    this.#over = true;
    if (this.#ended.signal.aborted) void this.#go.call("dispose", { saver: this.#bound[0] }).catch(() => undefined); // it ended as Go began
    // Only now does Go know this AutoSave. Marks of a text that another one has replaced do not count.
    if (this.#marked && this.#saver.text().dirty) void this.#go.call("mark", { saver: this.#bound[0], marked: true }).catch(() => undefined);
  }

  /** Resolves when the runtime runs. A download that fails is repeated. Rejects if no runtime comes. */
  async #loaded(): Promise<void> {
    for (let again = retryMs; !this.#ended.signal.aborted; again = Math.min(2 * again, mostMs)) {
      try {
        return void await this.#go.call("answer", {}); // nobody has asked: only the runtime counts
      } catch (failure) {
        this.#refused = failure;
        if ((failure as { code?: string }).code !== "load-failed") throw failure;
        await this.#pause(again);
      }
    }
  }

  /** Waits for the next attempt. Another call may have tried for the last time. */
  #pause(ms: number): Promise<unknown> {
    return new Promise((done) => {
      setTimeout(done, ms);
      this.#stop.addEventListener("abort", done);
    });
  }

  /** An event of Go. The page does not learn what it knows already. */
  #heard(raw: SaverEvent): void {
    if (!this.#over && this.#promised) {
      const { type, content } = raw as SaverEvent & { content?: Uint8Array };
      if (type === "autosave:phase") {
        if (raw.state?.phase === "error") this.#lose("acquire-failed", raw.state.lastError);
        else if (raw.state?.readOnly) return;
      } else if (type === "autosave:editable" && !content) {
        return this.#adopted(raw);
      } else if (type === "autosave:editable") this.#lose("acquire-failed", undefined);
      else if (type === "autosave:readonly") this.#promised = false;
      else if (raw.state) raw = { ...raw, state: { ...raw.state, phase: "idle", readOnly: false } };
    } else if (this.#knowsReadOnly && (raw.type === "autosave:editable" || raw.type === "autosave:readonly")) {
      this.#knowsReadOnly = false;
      if (raw.type === "autosave:readonly") raw = { ...raw, type: "autosave:phase" }; // it has the holder
    }
    const { leaseId = this.#leaseId } = raw;
    this.#leaseId = undefined;
    this.#saver.heard(leaseId ? { ...raw, leaseId } : raw);
  }

  /** Go has the lock and found what the page shows. It waits for an answer; from now on the page gets its events. */
  #adopted({ ask, leaseId }: SaverEvent): void {
    this.#promised = false;
    this.#leaseId = leaseId;
    void this.#go.call("answer", { ask, saver: this.#bound[0] }).catch(() => undefined);
  }

  /** The page may no longer edit. */
  #lose(reason: string, error: unknown): void {
    if (this.#over || !this.#promised) return;
    this.#promised = false;
    this.#knowsReadOnly = true;
    this.#saver.heard({ type: "autosave:readonly", reason, ...(error !== undefined && { error }), state: { ...state, phase: "readonly", readOnly: true } } as unknown as SaverEvent);
  }

  /** The AutoSave has ended, or begins again. */
  #end(): void {
    this.#over = true;
    this.#ended.abort();
    if (!this.#loan?.given) void this.#loan?.release();
  }
}
