// The snapshots of a page, numbered, and which of them are saved.

import { uuid } from "./options";
import { content, type Content, equal, type Taking } from "./snapshot";

/** The text of the page at one moment. */
export interface Shot {
  readonly draft: string;
  readonly number: number;
  readonly marks: number; // how often the page had said that something has changed
  readonly base: string;
  readonly at: number;
  text?: Content; // absent while the page is still about to say
  readonly ready: Promise<Content>;
}

/**
 * Changes are counted, not flagged: what is marked while a snapshot is taken, or after it was pinned, is news.
 * A draft id names one text and everything typed into it; a page whose text is replaced takes a new one.
 */
export class Shots {
  readonly #take: Taking;
  draft = uuid();
  /** The generation that the text was typed on, and its content where that is known. */
  base = "";
  baseText: Content | undefined = "";
  marks = 0;
  /** How many contents the editor is loading: until it has, the page shows neither the old text nor the new one. */
  loading = 0;
  #untold = false;
  #number = 0;
  #savedMarks = 0;
  #firstMarks = 0; // how many there were when the text was replaced
  #served: Shot | undefined; // the last one that Go was given
  #pins: Shot[] = []; // for Go to be given, in order
  #stands: Shot | undefined; // the last one that was pinned
  #given: Shot[] = []; // to Go, and not saved yet
  #last: Shot | undefined; // the one that was taken as the page ended its AutoSave

  constructor(take: Taking) { this.#take = take; }

  mark(): void { this.marks++; }

  /** Whether something is marked that no generation has. */
  get unsaved(): boolean { return this.loading === 0 && this.marks > this.#savedMarks; }

  /** Whether something is marked that Go was not given. */
  get news(): boolean { return this.marks > (this.#served?.marks ?? this.#savedMarks); }

  /** Whether something was marked since the text was replaced. */
  get touched(): boolean { return this.marks > this.#firstMarks; }

  /** Returns the text of the page now. A pinned snapshot stands until something is marked. */
  take(): Shot {
    return this.#last ?? (this.#stands?.marks === this.marks ? this.#stands : this.#taken());
  }

  /** From here on the page has this snapshot, whatever it shows. */
  end(last: Shot | undefined): void { this.#last = last; }

  /** Returns the text of the page now. It stands until something is marked, even where the page shows another text without saying so. */
  stand(): Shot { return this.#stands = this.take(); }

  /** The snapshot that stands and is not saved, where the page shows another text by now. */
  get covered(): Content | undefined {
    const { marks, text } = this.#stands ?? {};
    if (marks !== this.marks || text === undefined || !this.unsaved) return undefined;
    try {
      const shown = content(this.#take());
      if (!(shown instanceof Promise)) return equal(shown, text) ? undefined : text;
      shown.catch(() => undefined); // that comes too late to be compared
    } catch {
      // The page cannot say what it shows.
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

  /** Takes the snapshot that Go is given next, unless the last one has all that is marked. */
  pin(): Shot {
    const shot = this.#stands ?? this.#served;
    this.#stands = shot?.marks === this.marks ? shot : this.#taken();
    this.#pins.push(this.#stands);
    return this.#stands;
  }

  /** There is a content that the editor is given in a later task. Until then it is like one that loads. */
  hold(): void {
    if (!this.#untold) this.loading++;
    this.#untold = true;
  }

  /** The editor is given the content. Returns whether it was held. */
  tell(): boolean {
    const held = this.#untold;
    if (held) this.loading--;
    this.#untold = false;
    return held;
  }

  /** Forgets what was pinned for a call that has ended. */
  unpin(shot: Shot | undefined): void {
    const at = this.#pins.findIndex((one) => one === shot); // a snapshot may be pinned for two calls
    if (at >= 0) this.#pins.splice(at, 1);
  }

  /** What Go is given: what is pinned, else what the page has now, else the same again. */
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

  /** Says that a snapshot needs no saving: a person has discarded it. Later changes still need saving. */
  discarded(shot: Shot): void {
    if (shot.draft !== this.draft) return;
    this.#savedMarks = Math.max(this.#savedMarks, shot.marks);
    if (this.#served === shot) this.#served = undefined;
    if (this.#stands === shot) this.#stands = undefined;
  }

  /** Changes with each mark, and with each snapshot that Go is given. */
  get moment(): string { return `${this.marks} ${this.#served?.number}`; }

  /** The page's text is another one from here on. */
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
