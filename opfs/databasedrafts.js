// The drafts of a document in IndexedDB, in the form in which journal.js uses them. The page of a draft holds a Web Lock
// of its own, which the browser releases when the page's worker ends. So a draft whose lock is free belongs to a page
// that is gone, or that has released it.

import { exists, list, read, transact } from "./database.js";
import { spent } from "./draftfile.js";
import { underLock } from "./opendraft.js";

/** @typedef {import("./draftfile.js").Header} Header */
/** @typedef {{ header: Header, content?: Uint8Array | undefined }} Stored */

/** The beginning of the folders that are in IndexedDB. No name of a folder in the file system has an empty component. */
export const inDatabase = "indexeddb://";

const folderName = "drafts";

/** The drafts in a folder. */
export class DatabaseDrafts {
  #root;

  /** @param {string} root */
  constructor(root) {
    this.#root = root;
  }

  /**
   * Opens a draft. Rejects with a NotFoundError if there is none, and with a NoModificationAllowedError if somebody else
   * keeps it open.
   * @param {string} draft @param {boolean} create
   */
  open(draft, create) { return this.#open(draft, create, "exclusive"); }

  /** Opens a draft to read it, as open does. Several pages may do so at once. @param {string} draft */
  look(draft) { return this.#open(draft, false, "shared"); }

  /** @param {string} draft @param {boolean} create @param {LockMode} mode */
  async #open(draft, create, mode) {
    const release = await locked(`holdfast draft ${this.#root}/${draft}`, mode);
    if (!release) throw new DOMException("another page has the draft open", "NoModificationAllowedError");
    try {
      const stored = await read(this.#root, folderName, draft);
      if (!stored && !create) throw new DOMException("there is no such draft", "NotFoundError");
      return new DatabaseDraft([this.#root, folderName, draft], stored, release);
    } catch (error) {
      release();
      throw error;
    }
  }

  /** Rejects if an open draft is gone: the site's data was cleared. @param {string} draft */
  async check(draft) {
    if (!await exists(this.#root, folderName, draft)) throw new DOMException("the draft is gone", "NotFoundError");
  }

  /** The names of all drafts, separated by slashes. */
  names() { return list(this.#root, folderName); }

  /** An empty draft is removed as it is closed. */
  async remove() {}

  /** The file of a generation; undefined if there is none. @param {string} id @returns {Promise<Uint8Array | undefined>} */
  generation(id) { return read(this.#root, "history", id); }
}

/** An open draft, with the methods of DraftFile. */
class DatabaseDraft {
  #key;
  /** @type {Stored | undefined} */
  #stored;
  #release;
  #flushed = true;

  /** @param {string[]} key @param {Stored | undefined} stored @param {() => void} release */
  constructor(key, stored, release) {
    this.#key = key;
    this.#stored = stored;
    this.#release = release;
  }

  get header() { return this.#stored?.header; }

  get number() { return this.header?.number ?? 0; }

  get filled() { return this.#stored?.content !== undefined; }

  content(number = this.number) { return number === this.number ? this.#stored?.content : undefined; }

  /** @param {Omit<Header, "bytes">} header @param {Uint8Array} [content] */
  async put(header, content) {
    const before = this.#stored;
    const stored = this.#stored = { header: { ...header, bytes: content ? content.length : -1 }, content };
    this.#flushed = false;
    try {
      await this.#write("relaxed");
    } catch (error) {
      if (this.#stored === stored) this.#stored = before;
      throw error;
    }
  }

  async flush() {
    if (this.#flushed) return;
    const stored = this.#stored;
    await this.#write("strict");
    this.#flushed = this.#stored === stored;
  }

  /** An empty draft has no content here. */
  trim() { return this.flush(); }

  /** Lets other pages open the draft. A draft that is of no use is removed. */
  async close() {
    try {
      if (spent(this)) await transact("readwrite", "relaxed", 0, (files) => files.delete(this.#key));
    } finally {
      this.#release();
    }
  }

  /** Writes the newest snapshot at that time, so that no attempt replaces a later one.
   * @param {IDBTransactionDurability} durability */
  #write(durability) {
    return transact("readwrite", durability, this.#stored?.content?.length ?? 0, (files) => files.put(this.#stored, this.#key));
  }
}

/** How long a page waits until another one has merged an entry, in milliseconds: one that is frozen never does. */
const mergeMs = 60_000;

/** The locks of pages that have taken too long. Nobody waits for them again. @type {Set<string>} */
const tooLong = new Set();

/**
 * Runs a function for a draft while no other page does, if there are Web Locks. Rejects if another page takes too long, and then at once until
 * that page has ended or goes on.
 * @template T
 * @param {string} folder @param {string} draft @param {() => Promise<T>} run
 * @returns {Promise<T>}
 */
export async function alone(folder, draft, run) {
  if (!navigator.locks) return run();
  const name = `holdfast merge ${folder}/${draft}`;
  return underLock(name, tooLong.has(name) ? { ifAvailable: true } : { signal: AbortSignal.timeout(mergeMs) }, () => {
    tooLong.delete(name);
    return run();
  }, (reason) => {
    tooLong.add(name);
    throw reason;
  });
}

/**
 * Takes a Web Lock, if it is free. Resolves with the function that releases it.
 * @param {string} name @param {LockMode} mode
 * @returns {Promise<(() => void) | undefined>}
 */
function locked(name, mode) {
  return new Promise((resolve, reject) => {
    navigator.locks.request(name, { ifAvailable: true, mode }, (lock) => {
      if (!lock) return resolve(undefined);
      return new Promise((release) => resolve(() => release(undefined)));
    }).catch(reject);
  });
}
