import type { LockErrorCode, Operation, ProjectLockError as Contract } from "../holdfast";
import type { Reason } from "./protocol";

export class ProjectLockError extends Error implements Contract {
  override readonly name = "ProjectLockError";
  readonly code: LockErrorCode;
  readonly operation: Operation;
  readonly retryable: boolean;
  readonly resource?: string;

  constructor({ message, code, operation, retryable, resource }: Reason) {
    super(message);
    this.code = code as LockErrorCode;
    this.operation = operation as Operation;
    this.retryable = retryable;
    if (resource !== undefined) this.resource = resource;
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
