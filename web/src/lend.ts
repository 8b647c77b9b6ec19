// Takes locks of the browser (Web Locks) while the runtime is still loading. The page keeps them, and lends them to Go when Go runs: a
// loan goes to Go as an argument of a call, and jsbridge/port.js answers Go's requests for these locks with it.

import type { Lent } from "../../jsbridge/port.js";
import type { AutoSaveOptions, LockMode } from "../holdfast";
import { within } from "./deadline";
import type { Acquisition } from "./options";

/** Whether the runtime is still loading, and the signal that aborts when the Holdfast ends. */
export type When = [loads: () => boolean, ended: AbortSignal];

/** Locks that the page holds for one call of Go. */
export interface Loan extends Lent {
  readonly number: number; // names the loan in messages to a worker
  given?: boolean; // Go was called, and releases the locks
}

/** The names of a place's lock and of the locks of all places around it, the outermost first. They are equal to those of Go's lock.Name. */
export function namesOf(root: string, path: readonly string[]): string[] {
  const names = [`holdfast:${root}`];
  path.forEach((component, at) => names.push(`${names[at]}${at ? "/" : "//"}${component.replace(/[%/\x00-\x1f\x7f]/g, percentEncoded)}`));
  return names;
}

const percentEncoded = (character: string): string => `%${character.charCodeAt(0).toString(16).padStart(2, "0").toUpperCase()}`;

/** The maximum time for the browser's answers, in milliseconds: an answer that is lost must not keep the page waiting forever. */
const answerMs = 2000;

/**
 * Takes the locks of a place: all of them, or none. The loan is undefined if somebody holds or awaits one of them, or if the browser does not
 * answer in time.
 *
 * The locks are released when `ended` aborts, and when the page enters the back/forward cache. They are also released when the page is
 * frozen before Go runs: they have no record yet, so no other page could take them over. With `lease`, a page that gives up the lease
 * (`ended` aborts with an AbortError) leaves the release to Go, which waits until the millisecond of the lease's token is over.
 */
export async function lend(root: string, path: readonly string[], mode: LockMode, ended: AbortSignal, lease = false): Promise<Loan | undefined> {
  if (ended.aborted || !navigator.locks) return undefined;
  const names = namesOf(root, path), returned = new AbortController(), { signal } = returned;
  const last = names.length - 1;
  let reportLoss!: (reason: unknown) => void;
  const stolen = new Promise<unknown>((resolve) => { reportLoss = resolve; });
  const untilReturned = new Promise((done) => signal.addEventListener("abort", done));
  const requests: Promise<unknown>[] = []; // each settles when the browser has its lock back
  const answers = names.map((name, at) => new Promise<boolean>((answer) => {
    requests.push(navigator.locks.request(name, { mode: at < last ? "shared" : mode, ifAvailable: true }, (lock) => {
      answer(!!lock);
      return lock && untilReturned;
    }).catch((reason: unknown) => { // refused, or stolen
      answer(false);
      reportLoss(reason);
      returned.abort();
    }));
  }));
  const loan: Loan = {
    number: crypto.getRandomValues(new Uint32Array(1))[0]! + 1, names: names.join("\0"),
    shared: (mode === "shared" ? 2 << last : 1 << last) - 1, // one bit for each name that is locked shared: all, or all but the last one
    stolen,
    look: () => navigator.locks.query(), // if a lock was stolen, the browser reports that before it answers
    release: () => {
      returned.abort();
      return Promise.all(requests);
    },
  };
  const returnSuspended = (): void => {
    reportLoss(new DOMException("the page was suspended", "AbortError"));
    returned.abort();
  };
  // With the signal of `returned`, the listeners are removed once the locks are returned.
  ended.addEventListener("abort", () => (lease && loan.given && (ended.reason as Error).name === "AbortError") || returned.abort(), { signal });
  addEventListener("pagehide", ({ persisted }) => persisted && returnSuspended(), { signal });
  globalThis.document?.addEventListener("freeze", () => loan.given || returnSuspended(), { signal });
  const allOrNone = async (): Promise<Loan | undefined> => {
    if ((await Promise.all(answers)).every(Boolean) && !signal.aborted) return loan;
    await loan.release();
    return undefined;
  };
  return within(allOrNone(), answerMs, () => undefined).catch(() => {
    returned.abort(); // a lock that is granted later is released at once
    return undefined;
  });
}

/** Whether the page may run Wasm, which its content security policy may forbid: an empty module shows it. */
function mayCompile(): boolean {
  try {
    return !!new WebAssembly.Module(Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0));
  } catch {
    return false;
  }
}

/**
 * Takes the lock of an AutoSave. Undefined if it is not free. Null if only Go may take it: the runtime does not load any more, the options
 * leave a doubt, or the browser lacks something.
 */
export async function mayEdit(root: string, options: AutoSaveOptions, ...[loads, ended]: When): Promise<Loan | null | undefined> {
  return loads() && navigator.locks && isCertain(options) && mayCompile() ? lend(root, options.path ?? [], "exclusive", ended) : null;
}

/** Whether Go accepts the options, and it is certain which locks Go would take for them. Defaults stand in for absent options. */
function isCertain({ path = [], debounceMs = 500, idleMs = 2000, maxGenerations = 1, maxBytes = 1, keep = "spread", standby = true, lock, enabled = true }: AutoSaveOptions): boolean {
  const hasLockOptions = Object.entries({ ...lock }).some(([name, value]) => value !== undefined && name !== "signal" && name !== "onReadonly");
  return !hasLockOptions && !lock?.signal?.aborted && enabled === true && typeof standby === "boolean" && ["spread", "latest"].includes(keep) && isPath(path)
    && [debounceMs, idleMs, maxGenerations, maxBytes].every((n) => typeof n === "number" && n > 0 && n < 1e12) && [maxGenerations, maxBytes].every(Number.isInteger)
    && debounceMs <= idleMs;
}

const isPath = (path: readonly string[]): boolean => Array.isArray(path) && path.every((part) => typeof part === "string" && part !== "" && !/\p{Surrogate}/u.test(part)) && path.join().length < 300 && path.length < 30; // Go asks for at most 30 names at once

/** The options of an acquisition that takes the locks of one place. Others, such as `slots`, need Go. */
const onePlaceOptions = ["path", "mode", "ttlMs", "heartbeatIntervalMs", "timeoutMs", "ifAvailable", "backoff", "leaseId"];

/** Takes the browser's locks for an acquisition that waits for the runtime, if they are free. The loan goes to Go with the acquisition. */
export function take(root: string, acquisition: Acquisition, ...[loads, ended]: When): void {
  const { path = [], mode = "exclusive" } = acquisition;
  const isOnePlace = Object.entries(acquisition).every(([name, value]) => value === undefined || onePlaceOptions.includes(name));
  if (loads() && isOnePlace && isPath(path) && ["exclusive", "shared"].includes(mode)) acquisition.lent = lend(root, path, mode, ended, true);
}
