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
  if (drafts) {
    for await (const name of entries(drafts)) {
      const file = await opened(drafts, name);
      if (!file || (file.size > 0 && newest(new Uint8Array(await file.slice(0, headLength).arrayBuffer()))?.bytes !== -1)) return true;
    }
  }
  return false;
}
