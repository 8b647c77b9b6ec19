// Time that a test moves, and the tasks of all tabs, which run one after the other.

import { setImmediate } from "node:timers";

interface Timer { id: number; at: number; everyMs: number | undefined; run: () => void; owner: Owner }

/** A page or a worker. Its tasks do not run after its end, and wait while it is suspended. A promise that had settled before may still run its code. */
export interface Owner { alive: boolean; suspended: boolean }

interface Task { run: () => void; owner: Owner }

export class Clock {
  /** Milliseconds since the test began. */
  now = 0;
  readonly #origin: number;
  #timers: Timer[] = [];
  #tasks: Task[] = [];
  #lastId = 0;
  #pumping = false;
  #outside = 0; // answers of Node.js that somebody waits for

  /** @param origin Unix milliseconds at which the test begins */
  constructor(origin: number) { this.#origin = origin; }

  get origin(): number { return this.#origin; }
  get wall(): number { return this.#origin + this.now; }

  /** Runs a task soon, after all earlier tasks. */
  task(owner: Owner, run: () => void): void {
    if (owner.alive) this.#tasks.push({ owner, run });
    this.#pump();
  }

  set(owner: Owner, run: () => void, ms: unknown, repeat = false): number {
    const delay = Math.max(0, Number(ms) || 0);
    const id = ++this.#lastId;
    if (!owner.alive) return id;
    this.#timers.push({ id, at: this.now + delay, everyMs: repeat ? Math.max(1, delay) : undefined, run, owner });
    this.#timers.sort((a, b) => a.at - b.at || a.id - b.id);
    this.#pump();
    return id;
  }

  clear(id: unknown): void { this.#timers = this.#timers.filter((timer) => timer.id !== id); }

  /** Counts an answer of Node.js as under way until it arrives. */
  outside<T>(answer: Promise<T>): Promise<T> {
    this.#outside++;
    const over = (): void => void this.#outside--;
    answer.then(over, over);
    return answer;
  }

  /** Removes the tasks and timers of an owner. */
  forget(owner: Owner): void {
    this.#timers = this.#timers.filter((timer) => timer.owner !== owner);
    this.#tasks = this.#tasks.filter((task) => task.owner !== owner);
  }

  /** Runs all tasks that need no more time. */
  async settle(): Promise<void> {
    this.#pump();
    for (let calm = 0; calm < 4; calm = this.#busy ? 0 : calm + 1) await new Promise<void>((done) => setImmediate(done));
  }

  /** Moves the time, from one timer to the next. */
  async advance(ms: number): Promise<void> {
    const end = this.now + ms;
    await this.settle();
    while (this.step(end)) await this.settle();
    this.now = end;
    await this.settle();
  }

  /** Moves the time to the next timer unless that is after `end`. Returns whether there was one. */
  step(end = Infinity): boolean {
    const next = this.#timers.find(({ owner }) => !owner.suspended);
    if (!next || next.at > end) return false;
    this.now = Math.max(this.now, next.at);
    return true;
  }

  get #busy(): boolean { return this.#outside > 0 || this.#next(false) !== undefined; }

  /** The next task or due timer. */
  #next(take: boolean): (() => void) | undefined {
    const at = this.#tasks.findIndex(({ owner }) => !owner.suspended);
    const task = this.#tasks[at];
    if (task) {
      if (take) this.#tasks.splice(at, 1);
      return task.run;
    }
    const timer = this.#timers.find(({ owner, at }) => !owner.suspended && at <= this.now);
    if (timer && take) {
      this.clear(timer.id);
      if (timer.everyMs !== undefined) {
        this.#timers.push({ ...timer, at: this.now + timer.everyMs });
        this.#timers.sort((a, b) => a.at - b.at || a.id - b.id);
      }
    }
    return timer?.run;
  }

  #pump(): void {
    if (this.#pumping) return;
    this.#pumping = true;
    setImmediate(() => {
      this.#pumping = false;
      const run = this.#next(true);
      if (!run) return;
      this.#pump();
      run();
    });
  }
}
