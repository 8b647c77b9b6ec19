import type * as Contract from "../holdfast";
import type { Reason } from "./protocol";

export class ProjectLockError extends Error implements Contract.ProjectLockError {
  override readonly name = "ProjectLockError";
  declare readonly code: Contract.LockErrorCode;
  declare readonly operation: Contract.Operation;
  declare readonly retryable: boolean;
  declare readonly resource?: string;

  constructor({ message, ...fields }: Reason) {
    super(message);
    Object.assign(this, fields);
  }
}

export class AutoSaveError extends Error implements Contract.AutoSaveError {
  override readonly name = "AutoSaveError";
  declare readonly code: Contract.AutoSaveErrorCode;
  declare readonly retryable: boolean;
  declare readonly generation?: string;

  constructor({ message, code, retryable, resource: generation }: Omit<Reason, "operation">) {
    super(message);
    Object.assign(this, { code, retryable, ...(generation !== undefined && { generation }) });
  }
}

/** Converts any failure into an error of Holdfast: Go rejects with descriptions, the browser with its own errors. */
export function asError(failure: unknown, operation: Contract.Operation = "acquire"): ProjectLockError | AutoSaveError {
  if (failure instanceof ProjectLockError || failure instanceof AutoSaveError) return failure;
  const reason = failure as Reason;
  if (typeof reason.code !== "string") return problem("unsupported", String(failure), operation);
  return ["save", "read", "edit"].includes(reason.operation) ? new AutoSaveError(reason) : new ProjectLockError(reason);
}

/** An error that arises in the page. After a failed or slow download, the same call may succeed. */
export function problem(code: Contract.LockErrorCode, why: string, operation: Contract.Operation = "acquire"): ProjectLockError {
  return new ProjectLockError({ code, operation, retryable: ["load-failed", "acquire-timeout"].includes(code), message: `${code}: ${why}` });
}
