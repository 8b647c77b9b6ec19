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

/** Those in this thread that read drafts. */
export class Readers {
  /** The last reader of each draft. @type {Map<string, Promise<void>>} */
  #last = new Map();

  /**
   * Reads a draft that no page has open. Resolves with undefined if there is none. In some engines a file has one reader at a time, so the
   * readers of a draft take turns.
   * @template T
   * @param {string} folder @param {Drafts} dir @param {string} draft @param {(file: DraftFile) => T} use
   * @returns {Promise<T | undefined>}
   */
  look(folder, dir, draft, use) {
    const key = [folder, draft].join("/");
    const reader = (this.#last.get(key) ?? Promise.resolve()).then(async () => {
      const file = await patiently(() => dir.look(draft), false, looks);
      try {
        return file && use(file);
      } finally {
        await file?.close();
      }
    });
    const ended = () => { if (this.#last.get(key) === last) this.#last.delete(key); };
    const last = reader.then(ended, ended);
    this.#last.set(key, last);
    return reader;
  }
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
