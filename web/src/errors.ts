import type { LockErrorCode, Operation, ProjectLockError as Contract } from "../holdfast";
import type { Reason } from "./protocol";

export class ProjectLockError extends Error implements Contract {
  override readonly name = "ProjectLockError";
  declare readonly code: LockErrorCode;
  declare readonly operation: Operation;
  declare readonly retryable: boolean;
  declare readonly resource?: string;

  constructor({ message, ...fields }: Reason) {
    super(message);
    Object.assign(this, fields);
  }
}

/** Any failure as a ProjectLockError: Go rejects with descriptions, the browser with its own errors. */
export function asError(failure: unknown, operation: Operation = "acquire"): ProjectLockError {
  if (failure instanceof ProjectLockError) return failure;
  const { code } = failure as Reason;
  if (typeof code === "string") return new ProjectLockError(failure as Reason);
  return problem("unsupported", String(failure), operation);
}

/** An error that arises in the page; none of these can be retried. */
export function problem(code: LockErrorCode, why: string, operation: Operation = "acquire"): ProjectLockError {
  return new ProjectLockError({ code, operation, retryable: false, message: `${code}: ${why}` });
}
