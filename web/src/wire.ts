// The connection of an AutoSave to its facade, and the events that come from Go.

import type * as Contract from "../holdfast";
import type { Listeners } from "./listeners";
import type { Host, Method, RawEvent, Reason } from "./protocol";
import { content, encoded } from "./snapshot";

export interface Wire {
  /** The AutoSave object of the page. */
  handle: Listeners & Pick<Contract.AutoSave, "state">;
  holdfast: Contract.Holdfast;
  /** Calls Go, which answers before the deadline. */
  call(method: Method, arg: object, signal?: AbortSignal, end?: number): Promise<unknown>;
  journal: Host["journal"];
  /** The deadline of a call that begins now. */
  deadline(): number;
  /** The promise, or an error if the deadline comes first, or if the signal aborts. */
  inTime<T>(promise: Promise<T>, end: number, method?: Method, signal?: AbortSignal): Promise<T>;
  /** The receivers of events from Go, by the number of their AutoSave. */
  savers: Savers;
  /** Tells the listeners of the lock; returns whether none of them prevented the default. */
  tell(event: Contract.ProjectLockEvent): boolean;
  error(reason: unknown): Contract.ProjectLockError | Contract.AutoSaveError;
}

/** The methods of an AutoSave that its handle offers to the page. */
type Shown = "readOnly" | "lease" | "state" | "markDirty" | "flushNow" | "history" | "drafts" | "resolveDraft" | "pin" | "read" | "restore" | "requestEdit";

/**
 * The text that a page shows: the generation on which it was typed, "" if it may have to be loaded again; the id of its drafts; and whether
 * it is unsaved.
 */
export interface Text { shown: string; lineage: string; dirty: boolean }

/** An AutoSave that has begun. */
export interface Saver extends Pick<Contract.AutoSave, Shown> { heard(raw: RawEvent): void; leave(end: number): Promise<void>; text(): Text }

/** The receivers of events, by the numbers of their AutoSaves. */
interface Savers { set(id: number, saver: Pick<Saver, "heard">): unknown; delete(id: number): boolean }

export type RawState = Contract.AutoSaveState & { readOnly?: boolean; lastError?: Reason };
/** An event of an AutoSave, as Go sends it. */
export type SaverEvent = RawEvent & { state?: RawState; ask?: number; error?: Reason; lease?: Contract.ProjectLockLease };
/** The event that gives the page the right to edit. */
export type EditableEvent = SaverEvent & Contract.AutoSaveEditable & { base?: string };

// Go has no lone surrogates: two that differ would become one document.
const odd = (path: unknown): boolean => path !== undefined
  && !(Array.isArray(path) && path.every((part) => typeof part === "string" && !/\p{Surrogate}/u.test(part)));

/** The error of an AutoSave that cannot begin. */
export const refusal = (wire: Wire, code: string, why: string): Error => wire.error({ code, operation: "acquire", retryable: false, message: `${code}: ${why}` });

/** Refuses options that no AutoSave can have. Go checks the rest. */
export function check(wire: Wire, snapshot: unknown, options: Contract.AutoSaveOptions): void {
  if (!globalThis.document) throw refusal(wire, "unsupported", "AutoSave needs a page");
  const must = (right: boolean, what: string): void => {
    if (!right) throw refusal(wire, "invalid-argument", what);
  };
  must(typeof snapshot === "function", "the snapshot must be a function");
  must(typeof options === "object" && options !== null, "options must be an object");
  const { path, lock, signal, merge, journalMs: every = 0 } = options as Record<string, unknown> & Contract.AutoSaveOptions;
  must(![path, lock?.path].some(odd), "path must be an array of strings, without lone surrogates");
  const within: unknown = lock?.within;
  must(within === undefined || typeof (within as Contract.ProjectLockLease | null)?.leaseId === "string", "lock.within must be a lease");
  must(signal === undefined || !!(signal as AbortSignal | null)?.throwIfAborted, "signal must be an AbortSignal"); // it may be a frame's
  must(merge === undefined || typeof merge === "function", "merge must be a function");
  must(typeof every === "number" && every >= 0 && every < 2 ** 31, "journalMs must be 0 or more");
}

/**
 * Asks the page's merge function for the content that resolves a conflict. If the function fails, the user decides, and
 * the page's error handler gets the error.
 */
export async function merged(merge: Contract.AutoSaveOptions["merge"], { draft, base, mine, theirs }: SaverEvent): Promise<object> {
  try {
    const result = await merge?.(Object.freeze({ draft, mine, theirs, ...(base !== undefined && { base }) }) as unknown as Contract.Conflict);
    return result === undefined ? {} : { bytes: encoded(await content(result)) };
  } catch (failure) {
    reportError(failure);
    throw failure;
  }
}

/** Asks the page's listeners whether the lock may be handed over. Rejects if it may not. */
export async function consent(wire: Wire, raw: SaverEvent, lease: Contract.ProjectLockLease): Promise<void> {
  const delays: PromiseLike<unknown>[] = [];
  let refused: string | undefined;
  const refuse = (why = ""): void => void (refused ??= String(why) || "the page that edits refused");
  const go = wire.tell(Object.freeze({
    type: raw.type as "lock:handover-requested", at: Date.now(), ownerId: lease.ownerId, resource: lease.resource, leaseId: lease.leaseId,
    lease, from: raw["from"] as string, refuse, waitUntil: (delay: PromiseLike<unknown>) => void delays.push(delay),
  }));
  if (!go) refuse();
  await Promise.all(delays); // a rejection refuses
  if (refused) throw new Error(refused);
}
