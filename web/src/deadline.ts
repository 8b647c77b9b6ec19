// The one deadline of a call: everything that the call waits for shares it.

import { problem } from "./errors";
import type { Method, Reason } from "./protocol";

/** Maximum time of a call that does not wait for a person, in milliseconds. */
export const callMs = 15_000;

/** Go must answer by this much earlier, and AutoSaves must end by this much before their Holdfast closes. */
const answerMs = 1000, closeMs = 2000;

/** The deadline of a call that begins now. */
export const deadline = (): number => performance.now() + callMs;

/** The deadline of AutoSaves whose Holdfast closes by `end`. */
export const beforeClose = (end: number): number => end - closeMs;

/** The time that Go has for an answer; undefined without a deadline. */
export const limitOf = (end: number): number | undefined =>
  (end === Infinity ? undefined : Math.max(1, end - answerMs - performance.now()));

/** The promise, or an error if the deadline comes first. */
export function inTime<T>(promise: Promise<T>, end: number, method?: Method): Promise<T> {
  if (end === Infinity) return promise;
  let timer: ReturnType<typeof setTimeout>;
  const late = new Promise<never>((_, reject) => {
    const reads = ["history", "read", "drafts"].includes(method as string);
    const code = reads ? "read-failed" : "write-failed";
    const reason: Reason = { code, operation: reads ? "read" : "save", retryable: true,
      message: code + ": the Go runtime has not answered in time; try again, or restart the browser" };
    timer = setTimeout(reject, end - performance.now(), reason);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Waits for the runtime, within the limits of an acquisition. Returns the rest of `timeoutMs`. */
export async function loadedWithin(running: Promise<unknown>, timeoutMs: number | undefined, signal: AbortSignal | undefined): Promise<number | undefined> {
  const begun = performance.now();
  const settled = new AbortController(); // a signal may live as long as the page: no listener stays on it
  let timer: ReturnType<typeof setTimeout> | undefined;
  await new Promise<unknown>((resolve, reject) => {
    const abort = (): void => reject(problem("aborted", "the caller gave up"));
    running.then(resolve, reject);
    if (signal?.aborted) abort();
    signal?.addEventListener("abort", abort, { signal: settled.signal });
    if (timeoutMs) timer = setTimeout(() => reject(problem("acquire-timeout", `the runtime was not loaded within timeoutMs (${timeoutMs})`)), timeoutMs);
  }).finally(() => {
    clearTimeout(timer);
    settled.abort();
  });
  return timeoutMs && Math.max(1, timeoutMs - (performance.now() - begun));
}
