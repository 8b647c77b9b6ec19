// Keeps what the page has and nobody has saved: in the draft's file, some times a second, and in localStorage where there is
// no time for that.

import type { Found, Rescue } from "../../opfs/journal.js";
import type { Host } from "./protocol";
import * as rescue from "./rescue";
import { type Shot, Shots } from "./shots";
import { encoded } from "./snapshot";

/** At most this part of the main thread's time goes into journalling. */
const share = 0.05;

export class Journal {
  readonly #shots: Shots;
  readonly #id: number;
  readonly #ownerId: string;
  readonly #everyMs: number; // 0: off
  readonly #post: Host["journal"];
  /** The document's folder; "" until Go has told it, and where no drafts are kept: AutoSave is switched off, or there are no files. */
  folder = "";
  #timer: ReturnType<typeof setTimeout> | undefined;
  #lastAt = 0; // when the last snapshot was taken
  #costs: number[] = []; // for how long each of the last three kept the page busy, in ms
  #busy = false;
  #stopped = false;
  #paused = false;
  sealed: Shot | undefined; // the last one that was made a draft while the page lives
  #stored: Shot | undefined;  // the last one that the file has
  #flying: Shot[] = [];       // on their way to it
  #kept = 0;                  // number of the one that localStorage has,
  #keptShot: Shot | undefined; // which is, or was, this one
  #unsure = false; // the file could not be written: what it has, and what is saved, may be gone

  constructor(shots: Shots, id: number, ownerId: string, everyMs: number, post: Host["journal"]) {
    this.#shots = shots;
    this.#id = id;
    this.#ownerId = ownerId;
    this.#everyMs = everyMs;
    this.#post = (...asked) => (this.folder ? post(...asked) : Promise.reject(new Error("no drafts are kept"))) as never;
  }

  /** Whether all that is marked is stored, as a draft at least. */
  get current(): boolean { return !this.#shots.unsaved || (this.#stored?.draft === this.#shots.draft && this.#stored.marks >= this.#shots.marks); }

  /** Something was marked, now or while the last snapshot was on its way. */
  mark(begun = performance.now()): void {
    if (this.#timer !== undefined || this.#busy || this.#stopped || this.#paused || !this.#everyMs || !this.folder || this.current) return;
    // A machine that is busy with something else makes one snapshot look dear, and not three in a row.
    const due = Math.max(begun + this.#everyMs, this.#lastAt + (this.#costs.length ? Math.min(...this.#costs) / share : 0));
    this.#timer = setTimeout(() => void this.#tick(), due - performance.now());
  }

  /** While the editor loads a content, what the page shows is neither the old text nor the new one. */
  pause(paused: boolean): void {
    this.#paused = paused;
    this.mark();
  }

  async #tick(): Promise<void> {
    this.#timer = undefined;
    if (this.current || this.#paused) return;
    this.#busy = true;
    const begun = performance.now();
    const shot = this.#shots.take();
    const storing = this.#store(shot);
    this.#lastAt = performance.now();
    this.#costs = [...this.#costs.slice(-2), this.#lastAt - begun];
    if (!await storing && shot.draft === this.#shots.draft) this.#keep(shot); // the file cannot be written
    this.#busy = false;
    this.mark(this.#lastAt);
  }

  /** Writes a snapshot to the file. Returns whether the file has it. */
  async #store(shot: Shot): Promise<boolean> {
    try {
      const text = shot.text ?? await shot.ready;
      if (shot.draft !== this.#shots.draft) return true; // it was sealed meanwhile
      this.#flying.push(shot);
      await this.#post("write", this.#id, this.#entry(shot), text);
      this.#landed(shot);
      return true;
    } catch {
      this.#unsure = true;
      return false; // the page could not say, or the file cannot be written
    } finally {
      this.#flying = this.#flying.filter((one) => one !== shot);
    }
  }

  #landed(shot: Shot): void {
    if (shot.draft !== this.#shots.draft || shot.number < (this.#stored?.number ?? 0)) return;
    this.#stored = shot;
    this.#unsure = false;
    this.#drop(shot.draft, shot.number);
  }

  #drop(draft: string, number: number): void {
    if (this.#kept === 0 || this.#kept > number) return;
    this.#kept = 0;
    rescue.drop(this.folder, draft, number);
  }

  #entry({ draft, number, base, at }: Shot, cause = ""): { draft: string; number: number; base: string; at: number; cause: string } {
    return { draft, number, base, at, cause };
  }

  /**
   * Stores a snapshot at once, as far as that is possible. Until the file has it, the next page finds it in localStorage.
   * Returns whether localStorage has it. A text that was replaced since is a draft already.
   */
  keep(shot: Shot): boolean {
    if (shot.draft !== this.#shots.draft) return true;
    const kept = this.#keep(shot);
    if (!kept) void this.#store(shot);
    return kept;
  }

  #keep(shot: Shot): boolean {
    const { draft, number, base, at, text } = shot;
    if (text === undefined || !this.folder) return false;
    if (this.#kept > number) return true;
    const { baseText } = this.#shots;
    const stored = [...(this.#stored ? [this.#stored] : []), ...this.#flying];
    const bases: rescue.Basis[] = stored.map((one) => ({ number: one.number, text: one.text }));
    // A sealed file may be gone: another page may have adopted it, or a person discarded it.
    if (!this.#stored || this.#stored === this.sealed) bases.push(base ? { base, text: baseText } : { text: baseText });
    const keep = (from: rescue.Basis[]): boolean => rescue.keep(this.folder, { draft, number, base, at, ownerId: this.#ownerId,
      binary: typeof text !== "string", differences: rescue.differences(text, from) });
    if (!(this.#unsure && keep([])) && !keep(bases)) return false;
    this.#kept = number;
    this.#keptShot = shot;
    return true;
  }

  /** Stores a snapshot and lets other pages see it. Resolves with what the draft is then, where the file could be written. */
  async seal(shot: Shot, cause: string): Promise<Found | undefined> {
    const content = await shot.ready;
    const found = await this.#post("seal", this.#id, this.#entry(shot, cause), content).catch((failure: unknown) => {
      if (shot.draft === this.#shots.draft) {
        this.#unsure = true;
        this.#kept = 0; // it was kept as a difference to what may be gone
        this.#keep(shot);
      }
      throw failure;
    });
    this.#landed(shot);
    return found;
  }

  /** Makes a snapshot a draft: in its file, else in localStorage. Rejects if neither can be written. */
  async draft(shot: Shot, cause: string): Promise<object | undefined> {
    const { draft: id, number, base, at } = shot;
    const bytes = encoded(await shot.ready).length;
    const kept = this.keep(shot);
    const found = await this.seal(shot, cause).catch((failure: unknown) => {
      if (!kept) throw failure;
      return { id, number, base, at, bytes, cause, ownerId: this.#ownerId };
    });
    this.sealed = shot;
    return found;
  }

  /** A generation has what the page had up to a snapshot. */
  saved(draft: string, number: number): void {
    this.#drop(draft, number);
    if (this.#stored && draft === this.#stored.draft && this.#stored.number <= number) this.#stored = undefined;
    void this.#post("saved", this.#id, draft, number).catch(() => undefined);
  }

  /** The page's text is about to be replaced. Its unsaved part becomes a draft. */
  leave(cause: string): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (!this.current) { // else Go has had it sealed, or somebody has adopted it already
      const shot = this.#shots.take();
      this.#keep(shot);
      const { draft, number } = shot;
      void this.seal(shot, cause).then(() => rescue.drop(this.folder, draft, number), () => undefined);
    } else void this.#post("release", this.#id).catch(() => undefined);
    this.#stored = undefined;
    this.#flying = [];
    this.#kept = 0;
    this.#keptShot = undefined;
  }

  /** Brings what pages that are gone have left into their files; of this page's own, only where it wakes. */
  async merge(waking: boolean): Promise<void> {
    const unreadable: Rescue[] = [];
    await Promise.all(rescue.entries(this.folder).map(async (entry) => {
      if (entry.draft === this.#shots.draft && !waking) return;
      const became = await this.#post("merge", this.folder, entry);
      if (became === "unreadable") unreadable.push(entry);
      if (became !== "done") return;
      rescue.drop(this.folder, entry.draft, entry.number);
      if (this.#keptShot?.number === entry.number && this.#keptShot.draft === entry.draft) this.#stored = this.#keptShot;
    }));
    rescue.bound(this.folder, unreadable);
  }

  /** Ends journalling, and lets go of the file. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#post("release", this.#id).catch(() => undefined);
  }
}
