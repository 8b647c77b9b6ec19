// The one deadline of a call: everything that the call waits for shares it.

import { problem } from "./errors";
import type { Method, Reason } from "./protocol";

/** The deadline of a call that begins now and does not wait for the user: 15 seconds. */
export const deadline = (): number => performance.now() + 15_000;

/** The deadline of AutoSaves whose Holdfast closes by `end`: two seconds earlier. */
export const beforeClose = (end: number): number => end - 2000;

/** The time that Go has for an answer, one second less than the call; undefined without a deadline. */
export const limitOf = (end: number): number | undefined =>
  (end === Infinity ? undefined : Math.max(1, end - 1000 - performance.now()));

/** The promise, or an error if the deadline comes first, or if the signal aborts. */
export function inTime<T>(promise: Promise<T>, end: number, method?: Method, signal?: AbortSignal): Promise<T> {
  return within(unlessAborted(promise, signal), end - performance.now(), (): Reason => {
    const reads = ["history", "read", "drafts"].includes(method as string);
    const code = reads ? "read-failed" : "write-failed";
    return { code, operation: reads ? "read" : "save", retryable: true,
      message: code + ": the runtime did not answer in time; try again, or restart the browser" };
  });
}

/** Waits for the runtime, within the limits of an acquisition. Returns the rest of `timeoutMs`. */
export async function loadedWithin(running: Promise<unknown>, timeoutMs: number | undefined, signal: AbortSignal | undefined): Promise<number | undefined> {
  const end = performance.now() + timeoutMs!;
  await within(unlessAborted(running, signal), timeoutMs || Infinity,
    () => problem("acquire-timeout", `the runtime did not load within timeoutMs (${timeoutMs})`));
  return timeoutMs && Math.max(1, end - performance.now());
}

/** The promise, or the error that late makes if the promise takes longer than `ms`. */
export function within<T>(promise: Promise<T>, ms: number, late: () => unknown): Promise<T> {
  let timer: ReturnType<typeof setTimeout>;
  return new Promise<T>((resolve, reject) => {
    promise.then(resolve, reject);
    timer = setTimeout(() => reject(late()), Math.min(ms, 2e9)); // setTimeout ends longer times at once
  }).finally(() => clearTimeout(timer));
}

/** The promise, or the error that refuse makes if the signal aborts first. A signal may live as long as the page: no listener stays on it. */
export function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined, refuse = (): unknown => problem("aborted", "its signal has aborted")): Promise<T> {
  let abort: () => void;
  return new Promise<T>((resolve, reject) => {
    promise.then(resolve, reject);
    abort = () => reject(refuse());
    if (signal?.aborted) abort();
    signal?.addEventListener("abort", abort);
  }).finally(() => signal?.removeEventListener("abort", abort));
}
