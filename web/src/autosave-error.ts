// Errors of AutoSave that arise in the page.

import type { Reason } from "./protocol";

const readOnly = (why: string): Reason => ({ code: "read-only", operation: "save", retryable: true, message: "read-only: this page " + why });

/** The error of a page that ends with unsaved text. */
export const notSaved = readOnly("ends with text that it may not save now; it is kept as a draft");

/** The error of a text that was typed before the page loaded the content. */
export const notLoaded = readOnly("has text that was typed before it had the content; it is kept as a draft. Load the content");
