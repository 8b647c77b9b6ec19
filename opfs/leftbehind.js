// Finds out before the Go program is loaded whether a page has left a draft behind.

import { headLength, newest } from "./draftfile.js";
import { entries, found, opened } from "./saved.js";

/**
 * A draft that may have text, up to a number of its page. Undefined if that is unknown.
 * @typedef {{ draft?: string, number?: number | undefined }} Left
 */

/**
 * Returns the drafts in the folder of a document that may have text: Go may make that text the content. A page that has saved
 * everything leaves an empty draft when it ends. Rejects if a draft is open: its page may be ending. The draft of the asking page does not
 * count.
 * @param {string} folder @param {string} own
 */
export async function drafted(folder, own) {
  /** @type {Left[]} */
  const left = [];
  const drafts = await found(navigator.storage.getDirectory(), `${folder}/drafts`);
  if (drafts) for await (const draft of entries(drafts)) {
    if (draft === own) continue;
    const file = /** @type {File} */ (await opened(drafts, draft));
    const head = new Uint8Array(await file.slice(0, headLength).arrayBuffer());
    const { bytes = 0, number } = newest(head) ?? /** @type {Left & { bytes?: number }} */ ({});
    if (head.length > 0 && bytes >= 0) left.push({ draft, number });
  }
  return left;
}
