// <holdfast-status> shows the page that edits, the state of the save, a button that asks for the lock, and drafts that wait for a decision. The import
// defines the element; on a server it does nothing. The element has no dependencies, and needs no exception in a content security policy.

import type { AutoSave } from "./holdfast.js";

/**
 * Set `autosave`, and place the element in the page. It looks for drafts of other pages when something is saved and when the page is shown. It removes
 * its listeners when it is removed, and never disposes of the AutoSave.
 *
 * Attributes: `text-<name>` replaces a text, with `{name}`, `{count}` and `{time}` for values. Names: none, loading, disabled, editing, reading,
 * reading-unknown, forbidden, asking, saved, saving, unsaved, offline, failed, ask, take-over, draft, drafts, drafts-title, empty, bytes, use, keep, discard,
 * handover-refused, handover-busy, handover-timeout.
 *
 * Parts: line, status (also by its state: editing, reading, asking, …), who, save (also by phase), button, ask, force, message, drafts-title,
 * drafts, draft, draft-text, use, keep, discard.
 *
 * Custom properties: --holdfast-editing, --holdfast-reading, --holdfast-waiting, --holdfast-failed, --holdfast-line, --holdfast-font, --holdfast-gap,
 * --holdfast-button, --holdfast-button-line, --holdfast-button-hover. The default colours follow `color-scheme`.
 */
export class HoldfastStatus extends HTMLElement {
  /** The AutoSave that is shown. */
  autosave: AutoSave | undefined;
}

declare global {
  interface HTMLElementTagNameMap { "holdfast-status": HoldfastStatus }
}
