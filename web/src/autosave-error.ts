// Errors of AutoSave that arise in the page.

import type { Reason } from "./protocol";

/** The error of a text that may not be saved: it was typed before the page loaded the content, or the page ends, or got another text. */
export const notSaved: Reason = { code: "read-only", operation: "save", retryable: true, message: "read-only: this page may not save; its text is a draft" };
