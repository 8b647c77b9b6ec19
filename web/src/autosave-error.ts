import type * as Contract from "../holdfast";
import type { Reason } from "./protocol";

export class AutoSaveError extends Error implements Contract.AutoSaveError {
  override readonly name = "AutoSaveError";
  readonly code: Contract.AutoSaveErrorCode;
  readonly retryable: boolean;
  readonly generation?: string;

  constructor({ message, code, retryable, resource }: Omit<Reason, "operation">) {
    super(message);
    this.code = code as Contract.AutoSaveErrorCode;
    this.retryable = retryable;
    if (resource !== undefined) this.generation = resource;
  }
}

/** Of a teardown whose text is not saved. */
export const notSaved = (): AutoSaveError => new AutoSaveError({ code: "read-only", retryable: true,
  message: "read-only: this page ends with text that it may not save now; the text is kept as a draft, and the next editor finds it" });

/** Of a text that was typed before the page was given the content. */
export const notLoaded = (): AutoSaveError => new AutoSaveError({ code: "read-only", retryable: true,
  message: "read-only: this page has a text that was typed before autosave:editable gave it the content; that text is kept as a draft. Load the content, then save" });
