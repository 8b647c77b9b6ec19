// Tells Go that something has changed: at once, and of what follows soon with the last of it.

import type { Shots } from "./shots";

const soonMs = 25;

export class Marks {
  readonly #shots: Shots;
  readonly #tell: () => void;
  #told = 0; // the marks that Go has heard of
  #armed = false; // it will hear of more
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** `tell` calls Go, which hears of the marks with any call: see news. */
  constructor(shots: Shots, tell: () => void) {
    this.#shots = shots;
    this.#tell = tell;
  }

  /** Something was marked. Many marks of one task are one. */
  mark(): void {
    if (this.#armed) return;
    this.#armed = true;
    queueMicrotask(this.#due);
  }

  #due = (): void => {
    if (this.#shots.marks === this.#told || this.#shots.loading) return void (this.#armed = false);
    this.#tell();
    this.#timer = setTimeout(this.#due, soonMs);
  };

  /** Whether there is something that Go has not heard of. It hears of it now, or once the content is loaded. */
  news(): boolean {
    if (this.#shots.loading) return false;
    const news = this.#shots.marks !== this.#told;
    this.#told = this.#shots.marks;
    return news;
  }

  /** Go has not got all that it has heard of. */
  again(): void {
    this.#told = -1;
    this.mark();
  }

  stop(): void { clearTimeout(this.#timer); }
}
