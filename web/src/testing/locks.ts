// navigator.locks of one origin, for tabs in one process: https://w3c.github.io/web-locks/.

import type { Clock, Owner } from "./clock";

type Callback = (lock: { name: string; mode: string } | null) => unknown;
interface Options { mode?: string; ifAvailable?: boolean; steal?: boolean; signal?: AbortSignal }
interface Request { owner: Owner; name: string; mode: string; callback: Callback; resolve: (value: unknown) => void; reject: (reason: unknown) => void }

export class Locks {
  readonly #clock: Clock;
  #held: Request[] = [];
  #waiting: Request[] = [];
  readonly #ids = new Map<Owner, string>();

  constructor(clock: Clock) { this.#clock = clock; }

  /** The lock manager of a page or worker. */
  of(owner: Owner): { request(name: string, ...rest: unknown[]): Promise<unknown>; query(): Promise<unknown> } {
    this.#ids.set(owner, `client-${this.#ids.size + 1}`);
    return {
      request: (name, ...rest) => this.request(owner, `${name}`, (rest.length > 1 ? rest[0] : {}) as Options, rest.at(-1) as Callback),
      query: async () => ({ held: this.#held.map(this.#info), pending: this.#waiting.map(this.#info) }),
    };
  }

  /** Releases all locks of an owner, and ends its requests. */
  forget(owner: Owner): void {
    this.#held = this.#held.filter((one) => one.owner !== owner);
    this.#waiting = this.#waiting.filter((one) => one.owner !== owner);
    this.#grantAll();
  }

  request(owner: Owner, name: string, { mode = "exclusive", ifAvailable, steal, signal }: Options, callback: Callback): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (!owner.alive) return;
      if (signal?.aborted) return reject(signal.reason);
      const request: Request = { owner, name, mode, callback, resolve, reject };
      if (steal) {
        for (const one of this.#held.filter((held) => held.name === name)) {
          this.#held = this.#held.filter((held) => held !== one);
          this.#clock.task(one.owner, () => one.reject(new DOMException("the lock was stolen", "AbortError")));
        }
        return this.#grant(request);
      }
      if (ifAvailable && !this.#free(request, this.#waiting)) return this.#clock.task(owner, () => this.#run(request, null));
      this.#waiting.push(request);
      signal?.addEventListener("abort", () => {
        if (!this.#waiting.includes(request)) return;
        this.#waiting = this.#waiting.filter((one) => one !== request);
        reject(signal.reason);
        this.#grantAll();
      });
      this.#grantAll();
    });
  }

  #info = ({ owner, name, mode }: Request): object => ({ name, mode, clientId: this.#ids.get(owner) });

  /** Whether a request conflicts with no holder and with no earlier waiter. */
  #free({ name, mode }: Request, before: Request[]): boolean {
    return ![...this.#held, ...before].some((one) => one.name === name && (one.mode === "exclusive" || mode === "exclusive"));
  }

  #grantAll(): void {
    const before: Request[] = [];
    for (const request of this.#waiting) {
      if (this.#free(request, before)) {
        this.#waiting = this.#waiting.filter((one) => one !== request);
        this.#grant(request);
      } else before.push(request);
    }
  }

  #grant(request: Request): void {
    this.#held.push(request);
    this.#clock.task(request.owner, () => this.#run(request, { name: request.name, mode: request.mode }));
  }

  #run(request: Request, lock: { name: string; mode: string } | null): void {
    const over = (settle: () => void) => (): void => {
      this.#held = this.#held.filter((one) => one !== request);
      this.#grantAll();
      this.#clock.task(request.owner, settle);
    };
    (async () => request.callback(lock))().then(
      (value) => over(() => request.resolve(value))(), (reason: unknown) => over(() => request.reject(reason))());
  }
}
