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

/** How often a draft that is open is read again, and after which time in milliseconds: its page may be ending. */
const tries = 6, tryMs = 40;

/** Whether a draft has text, or may have some. @param {FileSystemDirectoryHandle} drafts @param {string} name */
async function isFilled(drafts, name) {
  for (let left = tries; left > 0; left--) {
    const head = await opened(drafts, name).then((file) => file?.slice(0, headLength).arrayBuffer()).catch(() => undefined);
    if (head) return head.byteLength > 0 && newest(new Uint8Array(head))?.bytes !== -1;
    await new Promise((done) => { setTimeout(done, tryMs); });
  }
  return true;
}
