// All sentences of the demo about events, errors and reasons. They are in one place so that they agree.

import type { LockErrorCode, ProjectLockError, ProjectLockEvent, ReadonlyReason, Strategy, Warning } from "./holdfast.js";
import { remaining } from "./time.js";

export type Tone = "hold" | "wait" | "stop" | "other" | "plain";
export interface Telling { icon: string; tone: Tone; text: string; advice?: string; code?: string }

const strategies: Record<Strategy, string> = {
  "web-lock": "Web Locks", "file-lock": "the .lock file", remote: "the server",
};

/** For each code: its meaning for the user, and the user's options. */
const errors: Record<LockErrorCode, { what: string; advice: string }> = {
  "web-lock-unsupported": { what: "This browser has no Web Locks", advice: "The .lock file takes its place; nothing to do." },
  "acquire-denied": { what: "Another tab holds the lock", advice: "" },
  "acquire-timeout": { what: "The lock did not become free in time", advice: "Acquire again, choose “Wait until granted”, or take over." },
  "fallback-conflict": { what: "The .lock file belongs to another live tab", advice: "Wait for that tab, or take over." },
  "lease-stale": { what: "The lease expired before a heartbeat succeeded", advice: "The computer may have slept. Acquire again before writing." },
  "renew-failed": { what: "A heartbeat failed", advice: "The runtime tries again until the lease expires." },
  "release-failed": { what: "The lock’s record could not be removed", advice: "It expires after its TTL." },
  "not-allowed": { what: "The server does not allow you to do this", advice: "Sign in, or ask for the permission." },
  "call-lost": { what: "The tab that ran the service has ended during the call", advice: "The call may have happened: check before you call again." },
  "load-failed": { what: "The worker or the Wasm could not be fetched", advice: "Check the connection and try again." },
  "lease-lost": { what: "Another tab took over the lock", advice: "Stop writing. Acquire again to join the queue." },
  deadlock: { what: "This request was ended to break a deadlock of waiting tabs", advice: "Try again." },
  reentrant: { what: "This tab already holds the lock", advice: "Use its lease." },
  aborted: { what: "Waiting was cancelled", advice: "" },
  unsupported: { what: "Locks do not work in this context", advice: "Use a current browser, over https or on localhost." },
  "invalid-argument": { what: "An option is not valid", advice: "Correct it under “Options”." },
  "runtime-crashed": { what: "The runtime stopped unexpectedly; all its locks are released", advice: "Acquire starts a new runtime." },
};

const warnings: Record<Warning, string> = {
  "fallback-engaged": "Web Locks are not available: using the .lock file",
  "fallback-degraded": "The fallback works with reduced guarantees",
  "heartbeat-delayed": "A heartbeat came late, but in time",
  "self-wait": "This page waits for a lock it holds itself",
};

/** The code of a thrown value, if it has one. */
export function codeOf(error: unknown): LockErrorCode | undefined {
  const code = (error as { code?: unknown } | null | undefined)?.code;
  return typeof code === "string" && code in errors ? code as LockErrorCode : undefined;
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** An error as a row of the timeline. */
export function tellError(error: unknown, operation: string): Telling {
  const code = codeOf(error);
  if (!code) return { icon: "stop", tone: "stop", text: `Could not ${operation}: ${messageOf(error)}` };
  const { what, advice } = errors[code];
  // For these codes the runtime's own message names the cause (the option, the missing feature). The table cannot.
  const detail = code === "invalid-argument" || code === "unsupported" ? ` (${messageOf(error)})` : "";
  const mild = code === "acquire-denied" || code === "aborted" || code === "web-lock-unsupported";
  return {
    icon: mild ? "info" : (error as ProjectLockError).retryable ? "warn" : "stop",
    tone: mild ? "other" : (error as ProjectLockError).retryable ? "wait" : "stop",
    text: `${what}${detail}`, code,
    ...(advice ? { advice } : {}),
  };
}

/** The reason why this tab is read-only, in plain words. */
export function readonlyReason(reason: ReadonlyReason, error: ProjectLockError): { what: string; advice: string } {
  const known = codeOf(error);
  if (known) return errors[known];
  const fallback: Record<ReadonlyReason, LockErrorCode> = {
    "acquire-failed": "acquire-timeout", "renew-failed": "lease-stale", "release-failed": "release-failed",
    "lease-lost": "lease-lost", "runtime-crashed": "runtime-crashed",
  };
  return errors[fallback[reason]];
}

/** One plain sentence for an event. */
export function tell(event: ProjectLockEvent): Telling {
  switch (event.type) {
    case "lock:attempt":
      return {
        icon: "ask", tone: "plain",
        text: event.retry === 0 ? `Asking ${strategies[event.strategy]} for the lock` : `Retry ${event.retry}, asking ${strategies[event.strategy]} again`,
      };
    case "lock:waiting":
      return { icon: "wait", tone: "wait", text: `Waiting in the queue, retry ${event.retry} in ${remaining(event.delayMs)}` };
    case "lock:acquired":
      return { icon: "hold", tone: "hold", text: `Acquired (${event.lease.mode}), token ${event.lease.token}` };
    case "lock:renewed":
      return { icon: "beat", tone: "hold", text: `Renewed, token ${event.lease.token}` };
    case "lock:renew-scheduled":
      return { icon: "beat", tone: "hold", text: `Next heartbeat in ${remaining(event.nextHeartbeatInMs)}` };
    case "lock:warning":
      return { icon: "warn", tone: "wait", text: warnings[event.warning] ?? event.warning, ...(event.detail ? { advice: event.detail } : {}) };
    case "lock:fallback-engaged":
      return { icon: "info", tone: "other", text: "The .lock file replaces Web Locks" };
    case "lock:handover-requested":
      return { icon: "ask", tone: "other", text: `${event.from} asks to write` };
    case "lock:release-requested":
      return { icon: "out", tone: "plain", text: "Releasing" };
    case "lock:released":
      return { icon: "out", tone: "plain", text: "Released; the next tab in the queue may write" };
    case "lock:error":
      return tellError(event.error, event.operation);
    case "lock:readonly-entered":
      return event.lastError.code === "aborted"
        ? { icon: "info", tone: "plain", text: "No longer waiting; this tab may not write" }
        : { icon: "stop", tone: "stop", text: "Read-only from now on", code: event.reason };
  }
}

/** The reason why the runtime did not start, for the panel that then replaces the page. */
export function tellFailure(error: unknown): { title: string; text: string; advice: string } {
  // The checks are explicit instead of guesses from the message: these three causes explain nearly every failure.
  if (!isSecureContext) {
    return {
      title: "This address is not secure", text: "Browsers give locks and storage only to pages loaded over https or from localhost.",
      advice: "Open this page as https://… or http://localhost.",
    };
  }
  if (typeof WebAssembly === "undefined") {
    return {
      title: "WebAssembly is switched off", text: "Holdfast’s runtime is WebAssembly, and this browser does not support it. Lockdown and strict security modes switch it off.",
      advice: "Allow WebAssembly for this site, or use another browser.",
    };
  }
  const code = codeOf(error);
  if (code === "unsupported" || code === "web-lock-unsupported") {
    return { title: "This browser cannot hold locks", text: sentence(messageOf(error)), advice: errors.unsupported.advice };
  }
  if (code === "runtime-crashed") {
    return { title: "The runtime stopped", text: sentence(messageOf(error)), advice: "Try again to start a new runtime." };
  }
  return {
    title: "The runtime did not start", text: sentence(messageOf(error)),
    advice: "Check that the server runs and serves holdfast.js and holdfast.wasm, then try again.",
  };
}

function sentence(text: string): string {
  const trimmed = text.trim();
  return trimmed && !/[.!?]$/.test(trimmed) ? `${trimmed}.` : trimmed;
}
