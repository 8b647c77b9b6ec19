// Finds out before the Go program is loaded whether a page has left a draft behind.

import { headLength, newest } from "./draftfile.js";
import { entries, found, opened } from "./saved.js";

/**
 * Whether a folder of a document has a draft, of which Go may make the content. A page that has saved leaves an empty
 * draft behind as it ends.
 * @param {string} folder
 */
export async function drafted(folder) {
  const drafts = await found(navigator.storage.getDirectory(), `${folder}/drafts`);
  if (drafts) for await (const name of entries(drafts)) if (await isFilled(drafts, name)) return true;
  return false;
}

/**
 * Whether a draft has text, or may have some. Rejects if it is open: its page may be ending.
 * @param {FileSystemDirectoryHandle} drafts @param {string} name
 */
async function isFilled(drafts, name) {
  const file = await opened(drafts, name);
  const head = new Uint8Array(await /** @type {File} */ (file).slice(0, headLength).arrayBuffer());
  return head.length > 0 && newest(head)?.bytes !== -1;
}
