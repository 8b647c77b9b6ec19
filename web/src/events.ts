import type * as Contract from "../holdfast";
import { ProjectLockError } from "./errors";
import type { Lease, LeaseFields } from "./lease";
import type { RawEvent, Reason } from "./protocol";

/** The event that Go describes. */
export function revived(raw: RawEvent, made: (fields: LeaseFields) => Lease): Contract.ProjectLockEvent {
  const { lease, error, lastError } = raw as { lease?: LeaseFields; error?: Reason; lastError?: Reason };
  return Object.freeze({
    ...raw,
    ...(lease && { lease: made(lease) }),
    ...(error && { error: new ProjectLockError(error) }),
    ...(lastError && { lastError: new ProjectLockError(lastError) }),
  }) as unknown as Contract.ProjectLockEvent;
}
