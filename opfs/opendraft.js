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

/** How long a turn is waited for, in milliseconds. The page that waits must edit within a few seconds, even beside a frozen one. */
const turnMs = 1500;

/** Opens a draft to write it: see patiently. @param {Drafts} dir @param {string} draft @param {boolean} create */
export const opened = (dir, draft, create) => patiently(() => dir.open(draft, create), create, tries);

/**
 * Reads a draft that no page has open, see inTurn. Resolves with undefined if there is none.
 * @template T
 * @param {string} folder @param {Drafts} dir @param {string} draft @param {(file: DraftFile) => T} use
 * @returns {Promise<T | undefined>}
 */
export const looked = (folder, dir, draft, use) => inTurn(folder, draft, async () => {
  const file = await patiently(() => dir.look(draft), false, looks);
  try {
    return file && use(file);
  } finally {
    await file?.close();
  }
});

/**
 * Runs a function that opens a draft for a moment. In some engines a file has one reader at a time, and who writes is always alone. So those
 * in all pages take turns, if there are Web Locks. A frozen page may keep its turn: the next one waits for a time only.
 * @template T
 * @param {string} folder @param {string} draft @param {() => Promise<T>} run
 * @returns {Promise<T>}
 */
export async function inTurn(folder, draft, run) {
  if (!navigator.locks) return run();
  return underLock(`holdfast turn ${folder}/${draft}`, { signal: AbortSignal.timeout(turnMs) }, run, run);
}

/**
 * Runs a function under a Web Lock, or another one with the reason if the lock is not granted.
 * @template T
 * @param {string} name @param {LockOptions} how @param {() => Promise<T>} run @param {(reason: Error) => T | Promise<T>} otherwise
 * @returns {Promise<T>}
 */
export function underLock(name, how, run, otherwise) {
  let begun = false;
  return navigator.locks.request(name, how, (lock) => {
    if (!lock) throw new DOMException("another page has the lock", "TimeoutError");
    begun = true;
    return run();
  }).catch((error) => {
    if (begun) throw error;
    return otherwise(error);
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
