// This tab's knowledge about the lock, and how each event of the runtime changes it. It is pure: no DOM, no timers. So
// the page shows a function of the events alone.

import type {
  HolderInfo, ProjectLockError, ProjectLockEvent, ProjectLockLease, ReadonlyReason, WaiterInfo,
} from "./holdfast.js";

export interface Waiting {
  readonly since: number;
  readonly retry: number;
  readonly delayMs: number;
  /** Absent during an attempt. */
  readonly nextAttemptAt: number | undefined;
}

export interface State {
  runtime: "opening" | "open" | "failed";
  failure: unknown;
  ownerId: string;
  /** The key of the project's lock; known from the first event on. */
  resource: string | undefined;
  lease: ProjectLockLease | undefined;
  /** The start of the current acquisition. */
  acquiringSince: number | undefined;
  waiting: Waiting | undefined;
  readonly: { reason: ReadonlyReason; error: ProjectLockError; at: number } | undefined;
  /** A renewal, release or take-over in progress: its button must not be pressed twice. */
  busy: "renew" | "release" | "takeover" | undefined;
  held: HolderInfo[];
  pending: WaiterInfo[];
}

export type Kind = "opening" | "failed" | "holding" | "waiting" | "readonly" | "held" | "free";

export function newState(): State {
  return {
    runtime: "opening", failure: undefined, ownerId: "", resource: undefined, lease: undefined,
    acquiringSince: undefined, waiting: undefined, readonly: undefined, busy: undefined, held: [], pending: [],
  };
}

/** The one message of the status card. */
export function kindOf(state: State): Kind {
  if (state.runtime !== "open") return state.runtime;
  if (state.lease) return "holding";
  if (state.waiting) return "waiting";
  if (state.readonly) return "readonly";
  return otherHolders(state).length > 0 ? "held" : "free";
}

/** Holders of the project's lock in other tabs. */
export function otherHolders(state: State): HolderInfo[] {
  return state.held.filter((holder) => holder.ownerId !== state.ownerId && isProject(state, holder.resource));
}

/** Everyone who waits for the project's lock, in the browser's order. */
export function queue(state: State): WaiterInfo[] {
  return state.pending.filter((waiter) => isProject(state, waiter.resource));
}

function isProject(state: State, resource: string): boolean {
  return state.resource === undefined || resource === state.resource;
}

/** Applies an event. */
export function apply(state: State, event: ProjectLockEvent): void {
  state.resource ??= event.resource;
  switch (event.type) {
    case "lock:attempt":
      state.readonly = undefined;
      if (state.waiting) state.waiting = { ...state.waiting, nextAttemptAt: undefined };
      break;
    case "lock:waiting":
      state.waiting = {
        since: state.waiting?.since ?? state.acquiringSince ?? event.at,
        retry: event.retry, delayMs: event.delayMs, nextAttemptAt: event.at + event.delayMs,
      };
      break;
    case "lock:acquired":
      state.resource = event.lease.resource;
      state.lease = event.lease;
      state.waiting = undefined;
      state.readonly = undefined;
      break;
    case "lock:renewed":
    case "lock:renew-scheduled":
      // A renewal that was in progress when the lease ended must not bring the lease back.
      if (state.lease?.leaseId === event.lease.leaseId) state.lease = event.lease;
      break;
    case "lock:released":
      if (state.lease?.leaseId === event.leaseId) state.lease = undefined;
      break;
    case "lock:error":
      if (event.error.code === "lease-lost" || event.error.code === "lease-stale") state.lease = undefined;
      if (event.operation === "acquire" && !event.retryable) state.waiting = undefined;
      break;
    case "lock:readonly-entered":
      state.lease = undefined;
      state.waiting = undefined;
      // A user that pressed "Cancel" needs no error message.
      state.readonly = event.lastError.code === "aborted"
        ? undefined
        : { reason: event.reason, error: event.lastError, at: event.at };
      break;
    default:
      break; // only the timeline shows warnings, fallback, handover and release requests
  }
}
