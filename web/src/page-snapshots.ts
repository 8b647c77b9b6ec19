// The snapshots of a page, numbered, and which of them are saved.

import { limitMs } from "./limits";
import { content, type Content, equal, type Taking } from "./snapshot";
import { uuid } from "./uuid";

/** The text of the page at one moment. */
export interface PageSnapshot {
  readonly draft: string;
  readonly number: number;
  readonly marks: number; // number of changes that the page had reported
  readonly base: string;
  readonly at: number;
  readonly due: number; // when it is late, of performance.now(): the machine's clock may be set back
  text?: Content; // absent until the page has returned it
  readonly ready: Promise<Content>;
  left?: boolean; // the page got another text before Go got this one, which is a draft only
}

/**
 * Changes are counted, not flagged: a mark during a snapshot, or after it was pinned, is a new change. A draft id names
 * one text and everything typed into it. A page whose text is replaced takes a new draft id.
 */
export class PageSnapshots {
  readonly #take: Taking;
  draft = uuid();
  /** The generation on which the text was typed, and its content if that is known, and the page has shown nothing else without saving it. */
  base = "";
  baseText: Content | undefined = "";
  marks = 0;
  /**
   * Number of contents that the editor is loading: until it has loaded them, the page shows neither the old text nor
   * the new one.
   */
  loading = 0;
  #untold = false;
  #savedMarks = 0;
  #firstMarks = 0; // number of marks when the text was replaced
  #served: PageSnapshot | undefined; // the last snapshot that Go got
  #pins: PageSnapshot[] = []; // the pinned snapshots that Go will get, in order
  #lastPinned: PageSnapshot | undefined; // the last snapshot that was pinned
  number = 0; // of the last snapshot
  #fixed: PageSnapshot | undefined; // the last one that stays valid while the page shows another text
  given: PageSnapshot[] = []; // the snapshots that Go got and has not saved yet
  #last: PageSnapshot | undefined; // the snapshot taken when the page ended its AutoSave

  constructor(take: Taking) { this.#take = take; }

  mark(): void { this.marks++; }

  /** Whether there are marks that no generation contains. */
  get unsaved(): boolean { return this.loading === 0 && this.marks > this.#savedMarks; }

  /** Whether there are marks whose text Go has not got. */
  get news(): boolean { return this.marks > (this.#served?.marks ?? this.#savedMarks); }

  /** Whether there are marks since the text was replaced. */
  get touched(): boolean { return this.marks > this.#firstMarks; }

  /**
   * Returns the present text of the page. A snapshot that was pinned, or that Go has got, stays valid until the next mark. A draft with a
   * higher number than that of the same text in Go would seem to contain more than what is saved.
   */
  take(): PageSnapshot {
    return this.#last ?? this.#present(this.#lastPinned) ?? this.#present(this.#served) ?? this.#taken();
  }

  /**
   * The snapshot, if it is the present text of the page. A snapshot that the page has not returned in time may never come, so the next one
   * is taken, unless the page may show another text by now.
   */
  #present(snapshot: PageSnapshot | undefined): PageSnapshot | undefined {
    return snapshot?.marks === this.marks && (snapshot.text !== undefined || snapshot === this.#fixed || snapshot.due > performance.now()) ? snapshot : undefined;
  }

  /**
   * From now on this snapshot is the page's text, whatever the page shows. Go gets no earlier one: it may ask only once more. The calls that
   * wait for an earlier one reject.
   */
  end(last: PageSnapshot | undefined): void {
    this.#last = last;
    if (last) this.#pins = this.#pins.filter((one) => !(one.left = one !== last));
  }

  /**
   * Returns the present text of the page. It stays valid until the next mark, even if the page shows another text
   * without a mark.
   */
  fix(): PageSnapshot { return this.#fixed = this.#lastPinned = this.take(); }

  /** The snapshot that stays valid while the page shows another text. Go has possibly saved it already: it saves before it lets the page edit again. */
  get covered(): Content | undefined {
    const text = this.#present(this.#lastPinned)?.text;
    if (text === undefined) return undefined;
    const { text: shown } = this.#taken(); // absent if the page cannot return its text at once
    return shown !== undefined && equal(shown, text) ? undefined : text;
  }

  /** Takes a snapshot. If the page throws, `ready` rejects with that error. */
  #taken(): PageSnapshot {
    const { draft, base, marks } = this;
    let text: Content | Promise<Content>;
    try {
      text = content(this.#take());
    } catch (error) {
      text = Promise.reject(error);
    }
    const snapshot: PageSnapshot = { draft, number: ++this.number, marks, base, due: performance.now() + limitMs, at: Date.now(), ready: Promise.resolve(text) };
    if (!(text instanceof Promise)) snapshot.text = text;
    snapshot.ready.then((ready) => { snapshot.text = ready; }, () => this.#forget(snapshot));
    return snapshot;
  }

  get pinned(): boolean { return this.#pins.length > 0; }

  /** Takes the next snapshot for Go, unless the last one includes all marks. */
  pin(): PageSnapshot {
    const snapshot = this.#lastPinned = this.take();
    this.#pins.push(snapshot);
    return snapshot;
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
  unpin(snapshot: PageSnapshot | undefined): void {
    const at = this.#pins.indexOf(snapshot!); // a snapshot may be pinned for two calls
    if (at >= 0) this.#pins.splice(at, 1);
  }

  /** The snapshot for Go: the pinned one, otherwise the present text, otherwise the last one again. */
  serve(): PageSnapshot {
    const snapshot = this.#pins.shift() ?? this.take();
    if (!this.given.includes(snapshot)) this.given.push(snapshot);
    snapshot.left = false;
    return this.#served = snapshot;
  }

  /** A generation was made of a snapshot of the present draft, perhaps by another page. */
  saved(number: number, generation: string): void {
    const snapshot = [...this.given, this.#fixed].find((one) => one?.number === number);
    this.given = this.given.filter((one) => one.number > number);
    this.#savedMarks = Math.max(this.#savedMarks, snapshot?.marks ?? 0);
    this.baseText = snapshot?.text;
    this.base = generation;
  }

  /** Records that a snapshot needs no saving, because the user has discarded it. Later changes still need saving. */
  discarded(snapshot: PageSnapshot): void {
    this.#savedMarks = Math.max(this.#savedMarks, snapshot.marks);
    this.baseText = undefined; // the page shows another one
    this.#forget(snapshot);
  }

  /** A value that changes with each mark, and with each snapshot for Go. */
  get moment(): string { return `${this.marks} ${this.#served?.number}`; }

  /** From now on the page shows another text. */
  replaced(base: string, text: Content | undefined): void {
    this.#pins.forEach((one) => { one.left = one.marks > this.#savedMarks; });
    this.draft = uuid();
    this.base = base;
    this.baseText = text;
    this.#savedMarks = this.#firstMarks = this.marks;
    this.#served = this.#lastPinned = undefined;
    this.#pins = [];
    this.given = [];
  }

  #forget(snapshot: PageSnapshot): void {
    if (this.#served === snapshot) this.#served = undefined;
    if (this.#lastPinned === snapshot) this.#lastPinned = undefined;
    this.unpin(snapshot);
    this.given = this.given.filter((one) => one !== snapshot);
  }
}
