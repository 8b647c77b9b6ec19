// Takes locks of the browser for a runtime that is still loading, which gets them when it runs.

import type { Lent } from "../../jsbridge/port.js";
import type { AutoSaveOptions, LockMode } from "../holdfast";
import { within } from "./deadline";
import type { Acquisition } from "./options";

/** Whether the runtime is still loading, and the signal that aborts when the Holdfast ends. */
export type When = [loads: () => boolean, ended: AbortSignal];

/** Locks that the page holds for one call of Go. */
export interface Loan extends Lent {
  readonly number: number;
  given?: boolean; // Go has been called
}

/** The names of a place and of all around it, the outermost first: those of Go's lock.Name. */
export function namesOf(root: string, path: readonly string[]): string[] {
  const names = [`holdfast:${root}`];
  path.forEach((component, at) => names.push(`${names[at]}${at ? "/" : "//"}${component.replace(/[%/\x00-\x1f\x7f]/g, encoded)}`));
  return names;
}

const encoded = (character: string): string => `%${character.charCodeAt(0).toString(16).padStart(2, "0").toUpperCase()}`;

/** How long the browser may take to answer: an answer that is lost must not keep the page waiting forever. */
const answerMs = 2000;

/**
 * Takes the locks of a place, if nobody holds or awaits them, and the browser answers in time. They are released when `ended` aborts, and
 * when the page enters the back/forward cache. They are also released when the page is frozen before Go runs, because they have no
 * record yet, and no other page could take them over. For a lease that the page gives back, Go itself releases them, when the millisecond
 * of the lease's token is over.
 */
export async function lend(root: string, path: readonly string[], mode: LockMode, ended: AbortSignal, lease = false): Promise<Loan | undefined> {
  if (ended.aborted || !navigator.locks) return undefined;
  const names = namesOf(root, path), over = new AbortController(), { signal } = over;
  const last = names.length - 1;
  let lose!: (reason: unknown) => void;
  const stolen = new Promise<unknown>((resolve) => { lose = resolve; });
  const until = new Promise((done) => signal.addEventListener("abort", done));
  const held: Promise<unknown>[] = [];
  const answers = names.map((name, at) => new Promise<boolean>((answer) => {
    held.push(navigator.locks.request(name, { mode: at < last ? "shared" : mode, ifAvailable: true }, (lock) => {
      answer(!!lock);
      return lock && until;
    }).catch((reason: unknown) => { // refused, or stolen
      answer(false);
      lose(reason);
      over.abort();
    }));
  }));
  const loan: Loan = {
    number: crypto.getRandomValues(new Uint32Array(1))[0]! + 1, names: names.join("\0"), shared: (mode === "shared" ? 2 << last : 1 << last) - 1, stolen,
    look: () => navigator.locks.query(), // the browser's answer comes after the news of a steal
    release: () => {
      over.abort();
      return Promise.all(held);
    },
  };
  const leave = (): void => {
    lose(new DOMException("the page was suspended", "AbortError"));
    over.abort();
  };
  ended.addEventListener("abort", () => (lease && loan.given && (ended.reason as Error).name === "AbortError") || over.abort(), { signal });
  addEventListener("pagehide", ({ persisted }) => persisted && leave(), { signal });
  globalThis.document?.addEventListener("freeze", () => loan.given || leave(), { signal });
  const taken = async (): Promise<Loan | undefined> => {
    if ((await Promise.all(answers)).every(Boolean) && !signal.aborted) return loan;
    await loan.release();
    return undefined;
  };
  return within(taken(), answerMs, () => undefined).catch(() => {
    over.abort(); // a lock that is granted later is released at once
    return undefined;
  });
}

/** Whether the page may run Wasm: its content security policy may forbid that. */
function compiles(): boolean {
  try {
    return !!new WebAssembly.Module(Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0));
  } catch {
    return false;
  }
}

/** Takes the lock of an AutoSave, if it is free. Null if the options leave a doubt: then only Go may take it. */
export async function mayEdit(root: string, options: AutoSaveOptions, ...[loads, ended]: When): Promise<Loan | null | undefined> {
  return loads() && navigator.locks && plain(options) && compiles() ? lend(root, options.path ?? [], "exclusive", ended) : null;
}

/** Options that Go accepts, and that leave no doubt about the lock. */
function plain({ path = [], debounceMs = 500, idleMs = 2000, maxGenerations = 1, maxBytes = 1, keep = "spread", standby = true, lock, enabled = true }: AutoSaveOptions): boolean {
  const fields = Object.entries({ ...lock }).some(([name, value]) => value !== undefined && name !== "signal" && name !== "onReadonly");
  return !fields && !lock?.signal?.aborted && enabled === true && typeof standby === "boolean" && ["spread", "latest"].includes(keep) && isPath(path)
    && [debounceMs, idleMs, maxGenerations, maxBytes].every((n) => typeof n === "number" && n > 0 && n < 1e12) && [maxGenerations, maxBytes].every(Number.isInteger)
    && debounceMs <= idleMs;
}

const isPath = (path: readonly string[]): boolean => Array.isArray(path) && path.every((part) => typeof part === "string" && part !== "" && !/\p{Surrogate}/u.test(part)) && path.join().length < 300 && path.length < 30; // Go asks for at most 30 names at once

/** Options of an acquisition whose locks are those of one place. */
const known = ["path", "mode", "ttlMs", "heartbeatIntervalMs", "timeoutMs", "ifAvailable", "backoff", "leaseId"];

/** Takes the browser's locks for an acquisition that waits for the runtime, if they are free: see lend. */
export function take(root: string, acquisition: Acquisition, ...[loads, ended]: When): void {
  const { path = [], mode = "exclusive" } = acquisition;
  const one = Object.entries(acquisition).every(([name, value]) => value === undefined || known.includes(name));
  if (loads() && one && isPath(path) && ["exclusive", "shared"].includes(mode)) acquisition.lent = lend(root, path, mode, ended, true);
}
