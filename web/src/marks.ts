// Reports changes to the page's AutoSave and to Go: the first one at once, and following ones together with the last of them.

import type { PageSnapshots } from "./page-snapshots";

const soonMs = 25;

export class Marks {
  readonly #snapshots: PageSnapshots;
  readonly #tell: () => void;
  #told = 0; // the marks that Go has received
  #seen = 0; // the marks that tell has reported
  #armed = false; // Go will be called again
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** `tell` reports marks to the AutoSave, and calls Go. Go receives them with any call, perhaps earlier: see news. */
  constructor(snapshots: PageSnapshots, tell: () => void) {
    this.#snapshots = snapshots;
    this.#tell = tell;
  }

  /** Adds a mark. Many marks of one task count as one. */
  mark(): void {
    if (this.#armed) return;
    this.#armed = true;
    queueMicrotask(this.#due);
  }

  #due = (): void => {
    const { marks, loading } = this.#snapshots;
    if (marks === this.#seen || loading) return void (this.#armed = false);
    this.#seen = marks;
    this.#tell();
    this.#timer = setTimeout(this.#due, soonMs);
  };

  /** Whether there are marks that Go has not received. Go receives them with this call, or once the content is loaded. */
  news(): boolean {
    if (this.#snapshots.loading) return false;
    const news = this.#snapshots.marks !== this.#told;
    this.#told = this.#snapshots.marks;
    return news;
  }

  /** Calls Go again, because Go has not got the text of all marks that it has received. */
  again(): void {
    this.#told = this.#seen = -1;
    this.#armed = false; // at once: Go may hand over once it has saved
    this.mark();
  }

  stop(): void { clearTimeout(this.#timer); }
}
