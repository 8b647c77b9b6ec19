// Keeps the unsaved text of the page: in the draft's file, some times a second, and in localStorage if there is no time
// for that.

import type { Found, Rescue } from "../../opfs/journal.js";
import { limitMs } from "./loading";
import type { Host } from "./protocol";
import * as rescue from "./rescue";
import { type Shot, Shots } from "./shots";
import { encoded } from "./snapshot";

/** Maximum share of the main thread's time for journalling. */
const share = 0.05;

export class Journal {
  readonly #shots: Shots;
  readonly #id: number;
  readonly #ownerId: string;
  #everyMs: number; // 0: off
  readonly #post: Host["journal"];
  /**
   * The document's folder; "" until Go has reported it, and if no drafts are kept: AutoSave is switched off, or there
   * are no files.
   */
  folder = "";
  #timer: ReturnType<typeof setTimeout> | undefined;
  #lastAt = 0; // when the last snapshot was taken
  #costs: number[] = []; // the main thread's time for each of the last three, in ms
  #busy = false;
  #paused = false;
  sealed: Shot | undefined; // the last one that became a draft while the page lives
  #stored: Shot | undefined;  // the last one that the file contains
  #next = 0;                  // a lower number is saved, or older than what the file contains
  #flying: Shot[] = [];       // being written to it, or given up: the last of these may still arrive
  #kept = 0;                  // number of the one in localStorage,
  #keptShot: Shot | undefined; // which is, or was, this one
  #unsure = false; // the file could not be written: its content, and saved content, may be gone

  constructor(shots: Shots, id: number, ownerId: string, everyMs: number, post: Host["journal"]) {
    this.#shots = shots;
    this.#id = id;
    this.#ownerId = ownerId;
    this.#everyMs = everyMs;
    this.#post = (...asked) => (this.folder ? post(...asked) : Promise.reject(new Error("no drafts are kept"))) as never;
  }

  /** Whether all marked text is stored, at least as a draft. */
  get current(): boolean { return !this.#shots.unsaved || (this.#stored?.draft === this.#shots.draft && this.#stored.marks >= this.#shots.marks); }

  /** Text was marked, now or while the last snapshot was being written. */
  mark(begun = performance.now()): void {
    if (this.#timer !== undefined || this.#busy || this.#paused || !this.#everyMs || !this.folder || this.current) return;
    // Other work on the machine can make one snapshot look expensive, but not three in a row.
    const due = Math.max(begun + this.#everyMs, this.#lastAt + (this.#costs.length ? Math.min(...this.#costs) / share : 0));
    this.#timer = setTimeout(() => void this.#tick(), due - performance.now());
  }

  /** While the editor loads a content, the page shows neither the old text nor the new one. */
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
    // A promise of the page may never settle: the next snapshot does not wait for it.
    if (await Promise.race([storing, new Promise((done) => setTimeout(done, limitMs))]) === false && shot.draft === this.#shots.draft) this.#keep(shot); // the file cannot be written
    this.#busy = false;
    this.mark(this.#lastAt);
  }

  /** Writes a snapshot to the file. Returns whether the file contains it. */
  async #store(shot: Shot): Promise<boolean> {
    try {
      const text = shot.text ?? await shot.ready;
      if (shot.draft !== this.#shots.draft) return true; // it was sealed meanwhile
      this.#flying = [...this.#flying, shot].slice(-8);
      await this.#post("write", this.#id, this.#entry(shot), text);
      this.#landed(shot);
      return true;
    } catch {
      this.#unsure = true;
      return false; // the page could not return its text, or the file cannot be written
    }
  }

  #landed(shot: Shot): void {
    if (shot.draft !== this.#shots.draft || shot.number < this.#next) return;
    this.#stored = shot;
    this.#next = shot.number;
    this.#unsure = false;
    this.#flying = this.#flying.filter((one) => one.number > shot.number); // writes end in their order
    this.#drop(shot.draft, shot.number);
  }

  #drop(draft: string, number: number): void {
    if (!this.#kept || this.#kept > number) return;
    this.#kept = 0;
    rescue.drop(this.folder, draft, number);
  }

  #entry({ draft, number, base, at }: Shot, cause = ""): { draft: string; number: number; base: string; at: number; cause: string } {
    return { draft, number, base, at, cause };
  }

  /**
   * Stores a snapshot synchronously, as far as possible. Until the file contains it, the next page finds it in
   * localStorage. Returns whether localStorage contains it. A text that was replaced since is a draft already.
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
    const { base: saved, baseText } = this.#shots; // a shot may be older than what was saved last
    const bases: rescue.Basis[] = [this.#stored ?? [], this.#flying].flat().map((one) => ({ number: one.number, text: one.text }));
    // A sealed file may be gone: another page may have adopted it, or the user discarded it.
    if (!this.#stored || this.#stored === this.sealed) bases.push(saved ? { base: saved, text: baseText } : { text: baseText });
    const keep = (from: rescue.Basis[]): boolean => rescue.keep(this.folder, { draft, number, base, at, ownerId: this.#ownerId,
      binary: typeof text !== "string", differences: rescue.differences(text, from) });
    if (!(this.#unsure && keep([])) && !keep(bases)) return false;
    this.#kept = number;
    this.#keptShot = shot;
    return true;
  }

  /** Stores a snapshot and lets other pages see it. Resolves with the draft, if the file could be written. */
  async seal(shot: Shot, cause: string): Promise<Found | undefined> {
    const content = await shot.ready;
    const found = await this.#post("seal", this.#id, this.#entry(shot, cause), content).catch((failure: unknown) => {
      if (shot.draft === this.#shots.draft) {
        this.#unsure = true;
        this.#kept = 0; // it was kept as a difference to a snapshot that may be gone
        this.#keep(shot);
      }
      throw failure;
    });
    this.#landed(shot);
    return found;
  }

  /** Makes a snapshot a draft: in its file, otherwise in localStorage. Rejects if neither can be written. */
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

  /** A generation contains the page's text up to a snapshot. */
  saved(draft: string, number: number): void {
    this.#drop(draft, number);
    if (this.#next <= number) { // its write may end only now
      this.#next = number + 1;
      this.#stored = undefined;
      if (this.#kept) this.#keep(this.#keptShot!); // it may build on the text that is emptied now
    }
    void this.#post("saved", this.#id, draft, number).catch(() => undefined);
  }

  /** The page's text is about to be replaced. Its unsaved part becomes a draft. */
  leave(cause: string): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const shot = this.current ? undefined : this.#shots.take(); // otherwise Go has sealed it, or another page has adopted it already
    // An editor may mark the preview that it loads. A journalled text is a draft in any case.
    if (shot && (this.#stored || this.#flying[0] || this.#kept || shot.text !== this.#shots.baseText)) {
      this.#keep(shot);
      const { draft, number } = shot;
      void this.seal(shot, cause).then(() => rescue.drop(this.folder, draft, number), () => undefined);
    } else void this.#post("release", this.#id).catch(() => undefined);
    this.#stored = undefined;
    this.#flying = [];
    this.#kept = 0;
    this.#keptShot = undefined;
  }

  /** Brings the entries of pages that are gone into their files; its own entries only when it wakes. */
  async merge(waking: boolean): Promise<void> {
    const unreadable: Rescue[] = [];
    await Promise.all(rescue.entries(this.folder).map(async (entry) => {
      if (entry.draft === this.#shots.draft && !waking) return;
      const became = await this.#post("merge", this.folder, entry);
      if (became === "unreadable") unreadable.push(entry);
      if (became !== "done") return;
      rescue.drop(this.folder, entry.draft, entry.number);
      if (this.#keptShot?.draft === entry.draft && this.#keptShot.number === entry.number) this.#stored = this.#keptShot;
    }));
    rescue.bound(this.folder, unreadable);
  }

  /** Ends journalling, and releases the file. */
  async stop(): Promise<void> {
    this.#everyMs = 0;
    clearTimeout(this.#timer);
    await this.#post("release", this.#id).catch(() => undefined);
  }
}
