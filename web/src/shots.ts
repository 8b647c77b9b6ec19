// The snapshots of a page, numbered, and which of them are saved.

import { uuid } from "./options";
import { content, type Content, equal, type Taking } from "./snapshot";

/** The text of the page at one moment. */
export interface Shot {
  readonly draft: string;
  readonly number: number;
  readonly marks: number; // number of changes that the page had reported
  readonly base: string;
  readonly at: number;
  text?: Content; // absent until the page has returned it
  readonly ready: Promise<Content>;
}

/**
 * Changes are counted, not flagged: a mark during a snapshot, or after it was pinned, is a new change. A draft id names
 * one text and everything typed into it. A page whose text is replaced takes a new draft id.
 */
export class Shots {
  readonly #take: Taking;
  draft = uuid();
  /** The generation on which the text was typed, and its content if that is known. */
  base = "";
  baseText: Content | undefined = "";
  marks = 0;
  /**
   * Number of contents that the editor is loading: until it has loaded them, the page shows neither the old text nor
   * the new one.
   */
  loading = 0;
  #untold = false;
  #number = 0;
  #savedMarks = 0;
  #firstMarks = 0; // number of marks when the text was replaced
  #served: Shot | undefined; // the last snapshot that Go got
  #pins: Shot[] = []; // the pinned snapshots that Go will get, in order
  #stands: Shot | undefined; // the last snapshot that was pinned
  #given: Shot[] = []; // the snapshots that Go got and has not saved yet
  #last: Shot | undefined; // the snapshot taken when the page ended its AutoSave

  constructor(take: Taking) { this.#take = take; }

  mark(): void { this.marks++; }

  /** Whether there are marks that no generation contains. */
  get unsaved(): boolean { return this.loading === 0 && this.marks > this.#savedMarks; }

  /** Whether there are marks whose text Go has not got. */
  get news(): boolean { return this.marks > (this.#served?.marks ?? this.#savedMarks); }

  /** Whether there are marks since the text was replaced. */
  get touched(): boolean { return this.marks > this.#firstMarks; }

  /** Returns the present text of the page. A pinned snapshot stays valid until the next mark. */
  take(): Shot {
    return this.#last ?? (this.#stands?.marks === this.marks ? this.#stands : this.#taken());
  }

  /** From now on this snapshot is the page's text, whatever the page shows. */
  end(last: Shot | undefined): void { this.#last = last; }

  /**
   * Returns the present text of the page. It stays valid until the next mark, even if the page shows another text
   * without a mark.
   */
  stand(): Shot { return this.#stands = this.take(); }

  /** The unsaved snapshot that stays valid while the page shows another text. */
  get covered(): Content | undefined {
    const { marks, text } = this.#stands ?? {};
    if (marks !== this.marks || text === undefined || !this.unsaved) return undefined;
    try {
      const shown = content(this.#take());
      if (!(shown instanceof Promise)) return equal(shown, text) ? undefined : text;
      shown.catch(() => undefined); // it comes too late for the comparison
    } catch {
      // The page cannot return its text.
    }
    return text;
  }

  /** Takes a snapshot. If the page throws, `ready` rejects with that error. */
  #taken(): Shot {
    const { draft, base, marks } = this;
    let text: Content | Promise<Content>;
    try {
      text = content(this.#take());
    } catch (error) {
      text = Promise.reject(error);
    }
    const shot: Shot = { draft, number: ++this.#number, marks, base, at: Date.now(), ready: Promise.resolve(text) };
    if (!(text instanceof Promise)) shot.text = text;
    shot.ready.then((ready) => { shot.text = ready; }, () => this.#forget(shot));
    return shot;
  }

  get pinned(): boolean { return this.#pins.length > 0; }

  /** Takes the next snapshot for Go, unless the last one includes all marks. */
  pin(): Shot {
    const shot = this.#stands ?? this.#served;
    this.#stands = shot?.marks === this.marks ? shot : this.#taken();
    this.#pins.push(this.#stands);
    return this.#stands;
  }

  /** The editor gets a content in a later task. Until then it counts as loading. */
  hold(): void {
    if (!this.#untold) this.loading++;
    this.#untold = true;
  }

  /** The editor gets the content. Returns whether it was held back. */
  tell(): boolean {
    const held = this.#untold;
    if (held) this.loading--;
    this.#untold = false;
    return held;
  }

  /** Forgets the snapshot that was pinned for a call that has ended. */
  unpin(shot: Shot | undefined): void {
    const at = this.#pins.findIndex((one) => one === shot); // a snapshot may be pinned for two calls
    if (at >= 0) this.#pins.splice(at, 1);
  }

  /** The snapshot for Go: the pinned one, otherwise the present text, otherwise the last one again. */
  serve(): Shot {
    const shot = this.#pins.shift() ?? (this.#served && !this.news ? this.#served : this.take());
    if (!this.#given.includes(shot)) this.#given.push(shot);
    return this.#served = shot;
  }

  /** A generation was made of a snapshot. */
  saved(draft: string, number: number, generation: string): void {
    if (draft !== this.draft) return;
    const shot = this.#given.find((one) => one.number === number);
    this.#given = this.#given.filter((one) => one.number > number);
    if (shot) this.#savedMarks = Math.max(this.#savedMarks, shot.marks);
    this.base = generation;
    this.baseText = shot?.text;
  }

  /** Records that a snapshot needs no saving, because the user has discarded it. Later changes still need saving. */
  discarded(shot: Shot): void {
    if (shot.draft !== this.draft) return;
    this.#savedMarks = Math.max(this.#savedMarks, shot.marks);
    if (this.#served === shot) this.#served = undefined;
    if (this.#stands === shot) this.#stands = undefined;
  }

  /** A value that changes with each mark, and with each snapshot for Go. */
  get moment(): string { return `${this.marks} ${this.#served?.number}`; }

  /** From now on the page shows another text. */
  replaced(base: string, text: Content | undefined): void {
    this.draft = uuid();
    this.base = base;
    this.baseText = text;
    this.#savedMarks = this.#firstMarks = this.marks;
    this.#served = this.#stands = undefined;
    this.#pins = [];
    this.#given = [];
  }

  #forget(shot: Shot): void {
    if (this.#served === shot) this.#served = undefined;
    if (this.#stands === shot) this.#stands = undefined;
    this.unpin(shot);
    this.#given = this.#given.filter((one) => one !== shot);
  }
}
