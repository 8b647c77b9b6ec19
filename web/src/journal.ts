// Keeps the unsaved text of the page: in the draft's file, some times a second, and in localStorage if there is no time
// for that.

import type { Found, Rescue } from "../../opfs/journal.js";
import { lateMs, share } from "./limits";
import type { Host } from "./protocol";
import * as rescue from "./rescue";
import { type PageSnapshot, PageSnapshots } from "./page-snapshots";
import { after, encoded } from "./snapshot";

export class Journal {
  readonly #snapshots: PageSnapshots;
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
  #costs = [0]; // the main thread's time for each of the last three, in ms
  #busy = false;
  #paused = false;
  #alone = false; // Go does not run
  #moving: Promise<void> | undefined; // pending while the text is on its way from localStorage into the file
  sealed: PageSnapshot | undefined; // the last one that became a draft while the page lives
  #stored: PageSnapshot | undefined;  // the last one of the present draft that the file contains
  #next = 0;                  // a lower number is saved, or older than what the file contains
  #flying: PageSnapshot[] = [];       // being written to it, or given up: the last of these may still arrive
  #kept = 0;                  // number of the one in localStorage,
  #keptSnapshot: PageSnapshot | undefined; // which is, or was, this one
  #late = false; // a write to the file takes too long
  #unsure = false; // the file could not be written: its content, and saved content, may be gone

  constructor(snapshots: PageSnapshots, id: number, ownerId: string, everyMs: number, post: Host["journal"]) {
    this.#snapshots = snapshots;
    this.#id = id;
    this.#ownerId = ownerId;
    this.#everyMs = everyMs;
    this.#post = (...asked) => (this.folder ? post(...asked) : Promise.reject()) as never; // nobody looks at the reason
  }

  /** Whether all marked text is stored, at least as a draft. */
  get current(): boolean { return !this.#snapshots.unsaved || this.#stored?.marks! >= this.#snapshots.marks; }

  /** Text was marked, now or while the last snapshot was being written. */
  mark(begun = performance.now()): void {
    if (this.#timer || this.#busy || this.#paused || !this.#everyMs || !this.folder || this.current) return;
    // Other work on the machine can make one snapshot look expensive, but not three in a row.
    const due = Math.max(begun + this.#everyMs, this.#lastAt + Math.min(...this.#costs) / share);
    this.#timer = setTimeout(() => void this.#tick(), due - performance.now());
  }

  /**
   * While the editor loads a content, the page shows neither the old text nor the new one. Until Go has begun again, localStorage gets the
   * text: the worker may have ended, and another page may have adopted the file. See #move.
   */
  pause(paused: boolean, alone = this.#alone): void {
    this.#alone = alone;
    this.#paused = paused && !alone;
    this.#unsure ||= alone;
    this.mark();
  }

  async #tick(): Promise<void> {
    this.#timer = undefined;
    if (this.current || this.#paused) return;
    const begun = performance.now();
    const snapshot = this.#alone && this.#keptSnapshot?.marks === this.#snapshots.marks ? undefined : this.#snapshots.take();
    const storing = snapshot ? this.#store(snapshot, this.#late || this.#alone) : this.#move();
    this.#lastAt = performance.now();
    this.#costs = [...this.#costs.slice(-2), this.#lastAt - begun];
    if (!snapshot) return;
    this.#busy = true;
    const stored = await Promise.race([storing, after(lateMs)]);
    this.#late ||= stored === undefined && snapshot.text !== undefined; // a promise of the page may never settle
    if (!stored && snapshot.number >= this.#next && snapshot.draft === this.#snapshots.draft) this.#keep(snapshot); // the file cannot be written now
    this.#busy = false;
    this.mark(this.#lastAt);
  }

  /**
   * Brings the text from localStorage into the file: the browser may end before it has written localStorage to the disk. This needs a worker,
   * but not Go. It is repeated until there is a worker.
   */
  #move(): void {
    this.#moving ??= this.merge(true).catch(() => undefined).then(() => {
      this.#moving = undefined;
      this.mark();
    });
  }

  /** Writes a snapshot to the file, unless an earlier write is late. Returns whether the file contains it. */
  async #store(snapshot: PageSnapshot, late = false): Promise<boolean> {
    try {
      const text = snapshot.text ?? await snapshot.ready;
      if (snapshot.draft !== this.#snapshots.draft) return true; // it was sealed meanwhile
      if (late) return false;
      this.#flying = [...this.#flying, snapshot].slice(-8);
      await this.#post("write", this.#id, this.#entry(snapshot), text);
      this.#landed(snapshot);
      return true;
    } catch {
      this.#late = false;
      this.#unsure = true;
      return false; // the page could not return its text, or the file cannot be written
    }
  }

  #landed(snapshot: PageSnapshot): void {
    this.#late = false;
    if (snapshot.draft !== this.#snapshots.draft || snapshot.number < this.#next) return;
    this.#stored = snapshot;
    this.#next = snapshot.number;
    this.#unsure = false;
    this.#flying = this.#flying.filter((one) => one.number > snapshot.number); // writes end in their order
    this.#drop(snapshot.draft, snapshot.number);
  }

  #drop(draft: string, number: number): undefined {
    if (!this.#kept || this.#kept > number) return;
    this.#kept = 0;
    rescue.drop(this.folder, draft, number);
  }

  #entry({ draft, number, base, at }: PageSnapshot, cause = ""): { draft: string; number: number; base: string; at: number; cause: string } {
    return { draft, number, base, at, cause };
  }

  /**
   * Stores a snapshot synchronously, as far as possible. Until the file contains it, the next page finds it in localStorage. Returns whether
   * localStorage contains it or need not contain it, because the text is the saved one and never was another. A text that the page only
   * promises is stored later. A text that was replaced since is a draft already.
   */
  keep(snapshot: PageSnapshot): boolean {
    const kept = snapshot.draft !== this.#snapshots.draft || this.#keep(snapshot);
    if (!kept) void this.#store(snapshot).then((stored) => stored || this.#keep(snapshot));
    return kept;
  }

  #keep(snapshot: PageSnapshot): boolean {
    const { draft, number, base, at, text } = snapshot;
    if (text === undefined || !this.folder) return false;
    if (this.#kept > number) return true;
    const { base: saved, baseText, given } = this.#snapshots; // a snapshot may be older than what was saved last
    const before = [this.#stored ?? [], this.#flying].flat();
    // An editor may mark what it loads, and another page would make a draft of that. The entry of a page that is gone does not say whether
    // Go has received another text.
    if (!this.#kept && !this.#unsure && [snapshot, before, given].flat().every((one) => one.text === baseText)) return true;
    const bases: rescue.Basis[] = before.map(({ number, text }) => ({ number, text }));
    // A sealed file may be gone: another page may have adopted it, or the user discarded it.
    if (!this.#stored || this.#stored === this.sealed) bases.push({ ...(saved && { base: saved }), text: baseText });
    const keep = (from: rescue.Basis[]): boolean => rescue.keep(this.folder, { draft, number, base, at, ownerId: this.#ownerId,
      binary: typeof text !== "string", differences: rescue.differences(text, from) });
    if (!(this.#unsure && keep([])) && !keep(bases)) return false;
    this.#kept = number;
    this.#keptSnapshot = snapshot;
    return true;
  }

  /** Stores a snapshot and lets other pages see it. Resolves with the draft, if the file could be written. */
  async seal(snapshot: PageSnapshot, cause: string): Promise<Found | undefined> {
    const content = await snapshot.ready;
    const found = await this.#post("seal", this.#id, this.#entry(snapshot, cause), content, this.#snapshots.given[0]?.number).catch((failure: unknown) => {
      if (snapshot.draft === this.#snapshots.draft) {
        this.#unsure = true;
        this.#keep(this.#kept > snapshot.number ? this.#keptSnapshot! : snapshot); // it was kept as a difference to a snapshot that may be gone
      }
      throw failure;
    });
    this.#landed(snapshot);
    return found;
  }

  /** Makes a snapshot a draft: in its file, otherwise in localStorage. Rejects if neither can be written. */
  async draft(snapshot: PageSnapshot, cause: string): Promise<object | undefined> {
    const text = await snapshot.ready, kept = this.keep(snapshot);
    const found = await this.seal(snapshot, cause).catch((failure: unknown) => {
      if (!kept) throw failure;
      return { ...this.#entry(snapshot, cause), id: snapshot.draft, bytes: encoded(text).length, ownerId: this.#ownerId };
    });
    this.sealed = snapshot;
    if (!found) this.#snapshots.discarded(snapshot); // it is saved, or somebody has decided about it
    return found;
  }

  /** A generation contains the page's text up to a snapshot. */
  saved(draft: string, number: number): void {
    this.#drop(draft, number);
    if (this.#next <= number) { // its write may end only now
      this.#next = number + 1;
      this.#stored = undefined;
      if (this.#kept) this.keep(this.#keptSnapshot!); // it may build on the text that is emptied now
    }
    void this.#post("saved", this.#id, draft, number, this.#snapshots.number).catch(() => undefined);
  }

  /** The page's text is about to be replaced. If a part of it is unsaved, that becomes a draft, and `became` is called. */
  leave(became: () => unknown): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const snapshot = this.current ? this.#drop(this.#snapshots.draft, this.#kept) : this.#snapshots.take(); // otherwise Go has sealed it, or another page has adopted it already
    // An editor may mark the preview that it loads. A journalled text is a draft in any case.
    if (snapshot && (this.#stored || this.#flying[0] || this.#kept || snapshot.text !== this.#snapshots.baseText)) {
      this.#keep(snapshot);
      void this.seal(snapshot, "lock-lost").then(() => {
        rescue.drop(this.folder, snapshot.draft, snapshot.number);
        return became();
      }).catch(() => undefined);
    } else void this.#post("release", this.#id).catch(() => undefined);
    this.#stored = this.#keptSnapshot = undefined;
    this.#flying = [];
    this.#kept = 0;
  }

  /** Brings the entries of pages that are gone into their files; its own entries only when it wakes. */
  async merge(waking: boolean): Promise<void> {
    const unreadable: Rescue[] = [];
    await Promise.all(rescue.entries(this.folder).map(async (entry) => {
      if (entry.draft === this.#snapshots.draft && !waking) return;
      const became = await this.#post("merge", this.folder, entry);
      if (became === "unreadable") unreadable.push(entry);
      if (became !== "done") return;
      rescue.drop(this.folder, entry.draft, entry.number);
      if (this.#keptSnapshot?.draft === entry.draft && this.#keptSnapshot.number === entry.number) this.#stored = this.#keptSnapshot;
    }));
    rescue.bound(this.folder, unreadable);
  }

  /** Ends journalling, and releases the file. */
  stop(): Promise<void> {
    this.#everyMs = 0;
    clearTimeout(this.#timer);
    return this.#post("release", this.#id);
  }
}
