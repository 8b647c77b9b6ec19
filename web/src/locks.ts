// holdfast.locks: the LockManager interface of the Web Locks API, over either strategy.
// The checks and exceptions follow sections 3.1 and 4 of the specification (https://w3c.github.io/web-locks/).

import type { LockManagerLike, LockMode } from "../holdfast";

type Callback = (lock: { name: string; mode: LockMode } | null) => unknown;

/** A request with checked arguments. */
export interface LockRequest { name: string; mode: string; ifAvailable: boolean; steal: boolean }

/** Makes a request, and calls run while it holds the lock, or if the lock is not available. */
export type Requester = (request: LockRequest, signal: AbortSignal | undefined, run: (granted: unknown) => unknown) => Promise<unknown>;

let clock = performance as { holdfast?: number };
try {
  clock = top!.performance as object; // shared by the frames of a page
} catch { /* a worker has no top, and the top of another origin is inaccessible */ }

/** When a request was made, in milliseconds. The times of all frames of a page are distinct and rise. */
export const asked = (): number => (clock.holdfast = Math.max(clock.holdfast! + 0.002 || 0, Date.now()));

/**
 * Requests a lock from the first requester, then from the second, and holds both. So it also excludes pages that use only
 * the first. A release frees the first lock at once, so the order of requests is that of the first; the next holder
 * waits until the second lock is free too. When the first lock is stolen, the second is released although the callback
 * still runs. When the second alone is stolen, the request keeps the first: its stealer has lost that one and takes effect late.
 */
export const both = (first: Requester, second: Requester): Requester => async (request, signal, run) => {
  const lost = new AbortController();
  const stolen = new Promise((over) => lost.signal.addEventListener("abort", over));
  let follows: Promise<unknown> | undefined;
  let result: Promise<unknown> | undefined; // of run, with both locks
  try {
    const value = await first(request, signal, (lock) => lock ? new Promise((resolve, reject) => {
      // Before the second grants the lock, an abort ends the request at once.
      signal?.addEventListener("abort", () => result || reject(signal.reason), { signal: lost.signal });
      const ask = (ifAvailable: boolean, end = signal): Promise<unknown> => second({ ...request, ifAvailable }, end ? AbortSignal.any([end, lost.signal]) : lost.signal, (lock) => {
        if (!lock || lost.signal.aborted) return;
        result = Promise.resolve(lock).then(run); // an abort during run finds it set
        result.then(resolve, reject);
        return Promise.race([result, stolen]);
      }).catch((failure: unknown) => {
        if (code(failure) !== "lease-lost") throw failure;
        return result;
      });
      follows = ask(request.ifAvailable).then((value) => {
        if (result) return value;
        // The second lock may be about to be released. The time limit begins when the runtime has started and answered.
        const late = AbortSignal.timeout(3000);
        return ask(false, late).catch((failure: unknown) => {
          if (result || !late.aborted) throw failure;
          resolve(null); // releases the first lock
          return run(null);
        });
      });
      follows.then(resolve, reject);
    }) : run(null));
    return await (follows ?? value); // also its errors
  } finally {
    lost.abort();
  }
};

const code = (failure: unknown): unknown => (Object(failure) as { code?: unknown }).code;

/** A browser makes this class at its first use, and none in a frame that was removed. */
const Exception = DOMException;

const refuse = (why: string): DOMException => new Exception(why, "NotSupportedError");

export class Locks implements LockManagerLike {
  readonly #run: Requester;
  readonly #query: () => Promise<unknown>;

  constructor(run: Requester, query: () => Promise<unknown>) {
    this.#run = run;
    this.#query = query;
  }

  async query(): ReturnType<LockManagerLike["query"]> {
    checkActive();
    return this.#query() as ReturnType<LockManagerLike["query"]>;
  }

  async request<T>(...args: unknown[]): Promise<T> {
    checkActive();
    const name = `${args[0]}`; // unlike String(), this throws for a symbol
    const callback = args.length > 2 ? args[2] : args[1];
    if (typeof callback !== "function") throw new TypeError("callback must be a function");
    const { request, signal } = read(name, args.length > 2 ? args[1] : undefined);
    signal?.throwIfAborted();
    let own: unknown; // the failure of the callback
    try {
      return await this.#run(request, signal, (granted) => {
        signal?.throwIfAborted(); // the abort came before the grant arrived: the lock is released
        const result = (async () => (callback as Callback)(granted ? { name, mode: request.mode as LockMode } : null))();
        result.catch((failure: unknown) => { own = failure; });
        return result;
      }) as T;
    } catch (failure) {
      // Failures of the page stay unchanged; a browser has other exceptions than Go.
      const ours = failure !== own && failure !== signal?.reason && code(failure);
      if (ours === "lease-lost") throw new Exception("the lock was stolen", "AbortError");
      if (ours === "aborted") signal?.throwIfAborted();
      throw failure;
    }
  }
}

/** A frame that was removed from its page runs no workers and no timers, and has no locks. */
export function checkActive(): void {
  if (globalThis.document?.defaultView === null) throw new Exception("the frame is gone", "InvalidStateError");
}

/** Converts and checks the options as a browser does. */
function read(name: string, options: unknown): { request: LockRequest; signal: AbortSignal | undefined } {
  const given = options ?? {};
  if (given !== Object(given)) throw new TypeError("options must be an object");
  const { ifAvailable, mode = "exclusive", signal, steal } = given as Record<string, unknown>;
  const request = { name, mode: `${mode}`, ifAvailable: Boolean(ifAvailable), steal: Boolean(steal) };
  if (!["exclusive", "shared"].includes(request.mode)) throw new TypeError(`mode must not be ${request.mode}`);
  if (signal !== undefined) AbortSignal.any([signal as AbortSignal]); // throws unless it is a signal, which may be a frame's
  if (name.startsWith("-")) throw refuse("name must not begin with -");
  if (request.steal && request.ifAvailable) throw refuse("steal excludes ifAvailable");
  if (request.steal && request.mode === "shared") throw refuse("steal excludes mode shared");
  if (signal && (request.steal || request.ifAvailable)) throw refuse("signal excludes steal and ifAvailable");
  return { request, signal: signal as AbortSignal | undefined };
}
