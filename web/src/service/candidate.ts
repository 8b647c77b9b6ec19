// A tab that may serve: it waits for the lock, starts the service, and serves until its lease ends.

import type { Holdfast, LockErrorCode, ProjectLockError, ProjectLockLease } from "../../holdfast";

export type Functions = Record<string, (...args: unknown[]) => unknown>;
export type Start = (term: { token: number; signal: AbortSignal }) => unknown;

/** The lease of the tab that serves. A tab that is frozen is replaced after this time. */
const lock = { ttlMs: 15_000, heartbeatIntervalMs: 5000, timeoutMs: 2 ** 31 - 1, backoff: { maxRetries: 0 } };

/** How long `start` may take. */
const startMs = 30_000;

/** Pauses after a failure: the first and the longest. */
const pauseMs = 250, longestMs = 30_000;

/** Failures that no other attempt changes. */
const finally_ = ["aborted", "unsupported", "invalid-argument", "not-allowed"];

/** Whether a lease has not expired. A tab that was frozen knows that before it learns of its successor. */
export interface Validity {
  (): boolean;
  /** Is called at each renewal. */
  renewed?: () => void;
}

/** The part of the server of serve.ts that a candidate calls. */
interface Server {
  error(code: LockErrorCode, why: string): Error;
  /** Takes the lock of the term until the signal aborts. Returns whether this page holds it. `lost` is called if another page takes it. */
  hold(token: number, ended: AbortSignal, lost: () => void): Promise<boolean>;
  /** Serves until the signal aborts. */
  serve(token: number, functions: Functions, validity: Validity, locked: boolean, ended: AbortSignal): Promise<void>;
  /** `start` has failed. */
  failed(failure: unknown): void;
  /** This tab will never serve. */
  over(failure: unknown): void;
}

export class Candidate {
  readonly #open: () => Holdfast;
  readonly #start: Start;
  readonly #server: Server;
  readonly #life = new AbortController();
  #holdfast: Holdfast;
  #term: AbortController | undefined;
  #awake = Promise.resolve();
  #wake = (): void => undefined;
  #goOn = (): void => undefined; // ends a pause

  constructor(open: () => Holdfast, start: Start, server: Server) {
    this.#open = open;
    this.#start = start;
    this.#server = server;
    this.#holdfast = open();
    void this.#run();
  }

  async close(): Promise<void> {
    this.#life.abort();
    this.wake();
    this.#term?.abort(this.#server.error("aborted", "it was closed in the tab that served"));
    await this.#holdfast.close().catch(() => undefined); // its lock ends with it
  }

  /** The page ends, or goes into the back/forward cache. */
  sleep(): void {
    this.#awake = new Promise((wake) => { this.#wake = wake; });
    this.#term?.abort(this.#server.error("lease-lost", "the page entered the back/forward cache"));
  }

  wake(): void {
    this.#wake();
    this.#goOn();
  }

  async #run(): Promise<void> {
    for (let failures = 0; !this.#life.signal.aborted;) {
      await this.#awake;
      try {
        const lease = await this.#holdfast.acquireProjectLock({ ...lock, signal: this.#life.signal });
        failures = await this.#serve(lease) ? 0 : failures + 1;
      } catch (failure) {
        if (this.#life.signal.aborted) return;
        const { code } = failure as ProjectLockError;
        if (finally_.includes(code)) return this.#server.over(failure);
        if (code === "runtime-crashed") await this.#reopen();
        failures++;
      }
      if (failures) await this.#pause(Math.min(pauseMs * 2 ** (failures - 1), longestMs));
    }
  }

  async #reopen(): Promise<void> {
    await this.#holdfast.close().catch(() => undefined);
    if (!this.#life.signal.aborted) this.#holdfast = this.#open();
  }

  #pause(ms: number): Promise<void> {
    return new Promise((done) => {
      const timer = setTimeout(done, ms);
      this.#goOn = () => {
        clearTimeout(timer);
        done();
      };
    });
  }

  /** Starts the service and serves. Returns whether it could be started. */
  async #serve(lease: ProjectLockLease): Promise<boolean> {
    const term = this.#term = new AbortController(), { signal } = term, { token } = lease;
    const lost = (): void => term.abort(lease.signal.reason);
    lease.signal.addEventListener("abort", lost);
    if (lease.signal.aborted) lost();
    const validity = this.#validity(lease, signal);
    try {
      const held = this.#server.hold(token, signal, () => term.abort(this.#server.error("lease-lost", "another page took the lock of the term")));
      const functions = await this.#started(token, signal);
      await this.#server.serve(token, functions, validity, await held, signal);
      return true;
    } catch (failure) {
      if (signal.aborted) return true; // not a failure of start
      term.abort(failure);
      this.#server.failed(failure);
      return false;
    } finally {
      await lease.release().catch(() => undefined); // it may have ended
    }
  }

  async #started(token: number, signal: AbortSignal): Promise<Functions> {
    let late: ReturnType<typeof setTimeout>;
    const ended = new Promise<never>((_, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason as Error));
      signal.throwIfAborted();
      late = setTimeout(reject, startMs, this.#server.error("acquire-timeout", `start has not settled in ${startMs / 1000} s`));
    });
    const functions = await Promise.race([(async () => this.#start({ token, signal }))(), ended]).finally(() => clearTimeout(late));
    if (typeof functions !== "object" || functions === null) throw this.#server.error("invalid-argument", "start must return an object of functions");
    return functions as Functions;
  }

  /** Whether the lease has not expired, on both clocks: the wall clock may be set, the other one stops while a computer sleeps. */
  #validity(lease: ProjectLockLease, signal: AbortSignal): Validity {
    let wall = 0, monotonic = 0;
    const validity: Validity = () => !signal.aborted && Date.now() < wall && performance.now() < monotonic;
    const renewed = ({ expiresAt }: ProjectLockLease): void => {
      wall = expiresAt;
      monotonic = performance.now() + lease.ttlMs;
      validity.renewed?.();
    };
    renewed(lease);
    const stop = this.#holdfast.subscribe((event) => {
      if (event.type === "lock:renewed" && event.lease.leaseId === lease.leaseId) renewed(event.lease);
    });
    signal.addEventListener("abort", stop);
    return validity;
  }
}
