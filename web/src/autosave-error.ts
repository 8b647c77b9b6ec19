// Failures of AutoSave that arise in the page.

import type { Reason } from "./protocol";

const readOnly = (why: string): Reason => ({ code: "read-only", operation: "save", retryable: true, message: "read-only: this page " + why });

/** Of a teardown whose text is not saved. */
export const notSaved = readOnly("ends with text that it may not save now; the text is kept as a draft, and the next editor finds it");

/** Of a text that was typed before the page was given the content. */
export const notLoaded = readOnly("has a text that was typed before autosave:editable gave it the content; that text is kept as a draft. Load the content, then save");
