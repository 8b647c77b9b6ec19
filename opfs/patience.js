// Measures how long a worker has not answered. Only time in which this thread could have received the answer counts: a
// page that is busy, frozen, throttled or asleep does not count that time against its worker.
//
// This module has no imports, so that Go's own tests can load it.

export class Patience {
  #over;
  #stepMs;
  #left = Infinity;
  #last = 0;
  /** @type {ReturnType<typeof setInterval> | undefined} */
  #timer;

  /**
   * @param {() => void} over called once the time is over
   * @param {number} stepMs interval of the timer
   */
  constructor(over, stepMs = 250) {
    this.#over = over;
    this.#stepMs = stepMs;
  }

  /** Waits for that time from now on. Infinity ends the waiting.
   * @param {number} ms */
  wait(ms) {
    this.#left = ms;
    if (this.#timer !== undefined || ms === Infinity) return;
    this.#last = performance.now();
    this.#timer = setInterval(() => this.#step(), this.#stepMs);
  }

  /** Ends the timer at once. Otherwise the timer ends with its next step. */
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

/**
 * Time in which the browser answers a call that moves so many bytes. A storage that writes less than a megabyte in a
 * second is broken.
 * @param {number} bytes */
export const callMs = (bytes) => 4000 + bytes / 1000;

/**
 * Maximum time of a call that also waits until the disk has written the data of other programs.
 * @param {number} bytes */
export const diskMs = (bytes) => callMs(bytes) + 6000;
