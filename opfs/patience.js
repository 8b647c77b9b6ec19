// How long a worker has not answered. Only such time counts in which this thread could have heard the answer: a page that
// is busy, frozen, throttled or asleep, or whose machine is, blames nobody else for it.
//
// It imports nothing, so that Go's own tests can load it too.

export class Patience {
  #over;
  #stepMs;
  #left = Infinity;
  #last = 0;
  /** @type {ReturnType<typeof setInterval> | undefined} */
  #timer;

  /**
   * @param {() => void} over is called once the time is over
   * @param {number} stepMs how often it looks
   */
  constructor(over, stepMs = 250) {
    this.#over = over;
    this.#stepMs = stepMs;
  }

  /** Waits for so long from now on. Infinity ends the waiting.
   * @param {number} ms */
  wait(ms) {
    this.#left = ms;
    if (this.#timer !== undefined || ms === Infinity) return;
    this.#last = performance.now();
    this.#timer = setInterval(() => this.#step(), this.#stepMs);
  }

  /** Ends the waiting at once. Otherwise the timer ends with its next step. */
  stop() {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#left = Infinity;
  }

  #step() {
    const now = performance.now();
    this.#left -= Math.min(now - this.#last, 2 * this.#stepMs);
    this.#last = now;
    if (this.#left === Infinity) return this.stop();
    if (this.#left > 0) return;
    this.stop();
    this.#over();
  }
}

/** How long a synchronous file call may take that moves so many bytes: a storage that writes less than this in a second is broken.
 * @param {number} bytes */
export const callMs = (bytes) => 4000 + bytes / 1000;
