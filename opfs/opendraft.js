// Opens drafts that somebody else may have open.
//
// This module has no imports, so that Go's own tests can load it.

/** @typedef {import("./journal.js").Drafts} Drafts */
/** @typedef {import("./journal.js").DraftFile} DraftFile */

/**
 * How often a file that somebody else has open is tried again, the time between two tries, and the limit for all of
 * them, in milliseconds.
 */
const tries = 20, tryMs = 25, triesMs = 2000;

/** The number of tries for files whose pages most likely live. */
const looks = 4;

/** Opens a draft to write it: see patiently. @param {Drafts} dir @param {string} draft @param {boolean} create */
export const opened = (dir, draft, create) => patiently(() => dir.open(draft, create), create, tries);

/**
 * Reads a draft that no page has open. Resolves with undefined if there is none. In some engines a file has one reader at a time, so the
 * readers of a draft in all pages take turns, if there are Web Locks. A frozen page may keep its turn: the next reader waits for a time only.
 * @template T
 * @param {string} folder @param {Drafts} dir @param {string} draft @param {(file: DraftFile) => T} use
 * @returns {Promise<T | undefined>}
 */
export async function looked(folder, dir, draft, use) {
  let begun = false;
  const look = async () => {
    begun = true;
    const file = await patiently(() => dir.look(draft), false, looks);
    try {
      return file && use(file);
    } finally {
      await file?.close();
    }
  };
  if (!navigator.locks) return look();
  return navigator.locks.request(`holdfast read ${folder}/${draft}`, { signal: AbortSignal.timeout(triesMs) }, look).catch((error) => {
    if (begun) throw error;
    return look();
  });
}

/**
 * The opened file. Undefined if there is none, or if somebody else has the file open during all tries.
 * @param {() => Promise<DraftFile>} open @param {boolean} create whether it makes the file @param {number} times
 */
async function patiently(open, create, times) {
  const end = performance.now() + triesMs;
  for (let left = times; ; left--) {
    try {
      return await open();
    } catch (error) {
      const { name } = /** @type {Error} */ (error);
      // Somebody else reads it, or removes it at this moment.
      const passing = name === "NoModificationAllowedError" || (create && name === "NotFoundError");
      if (!passing && name !== "NotFoundError") throw error;
      if (!passing || left <= 1 || performance.now() > end) return undefined;
    }
    await new Promise((done) => { setTimeout(done, tryMs); });
  }
}
