// The files of AutoSave in IndexedDB, for browsers that have no file storage for a page. It works in every thread.
//
// One database serves the origin. Its only object store has a record for each file, under the key [root, folder, name].
// All requests of a transaction are made at once, and none of them needs the result of another one. So a page that is
// frozen keeps no transaction open, and other pages need not wait for it.
//
// This module imports only its neighbours, so that Go's own tests can load it.

import { diskMs } from "./patience.js";
import { bounded, sealed, sha256, taken } from "./savewriter.js";

/** @typedef {(files: IDBObjectStore) => IDBRequest} Ask */
/** @typedef {{ root: string, name: string, index: string, listing: Promise<string>, file?: Uint8Array }} Saving */

const databaseName = "holdfast", storeName = "files";

/** @type {Promise<IDBDatabase> | undefined} */
let connection;

/**
 * The first page of an origin waits until the database is made.
 * @returns {Promise<IDBDatabase>}
 */
function connected() {
  if (connection) return connection;
  const opening = open();
  const late = () => opening.then((database) => database.close(), () => undefined);
  const own = connection = bounded(opening, late, diskMs(0)).then((database) => {
    // The site's data is cleared: a connection that stays open would prevent this. The next request opens a new one.
    database.onversionchange = () => forget(own, database);
    database.onclose = () => forget(own, database);
    return database;
  });
  own.catch(() => forget(own));
  return own;
}

/** @returns {Promise<IDBDatabase>} */
function open() {
  return new Promise((resolve, reject) => {
    const asked = indexedDB.open(databaseName, 1);
    asked.onupgradeneeded = () => asked.result.createObjectStore(storeName);
    asked.onsuccess = () => resolve(asked.result);
    asked.onerror = () => reject(asked.error);
  });
}

/** @param {Promise<IDBDatabase>} own @param {IDBDatabase} [database] */
function forget(own, database) {
  database?.close();
  if (connection === own) connection = undefined;
}

/**
 * Makes requests in one transaction. Resolves with their results once it is complete; rejects with the reason if it has
 * changed nothing, and with a TimeoutError if that is unknown. A strict transaction waits for the disk, and all others wait
 * for that one.
 * @param {IDBTransactionMode} mode
 * @param {IDBTransactionDurability} durability "strict": the result survives a loss of power
 * @param {number} bytes to write, or to read
 * @param {Ask[]} asks
 * @returns {Promise<any[]>}
 */
export async function transact(mode, durability, bytes, ...asks) {
  const done = new Promise((resolve, reject) => {
    begun(mode, durability).then((transaction) => {
      /** @type {Promise<unknown>[]} */
      let asked = [];
      transaction.oncomplete = () => resolve(Promise.all(asked)); // Chromium completes before it has delivered a large result
      transaction.onabort = () => reject(transaction.error ?? new DOMException("the browser has closed the database", "AbortError"));
      try {
        asked = asks.map((ask) => result(ask(transaction.objectStore(storeName))));
        transaction.commit?.();
      } catch (error) {
        reject(error);
        transaction.abort();
      }
    }).catch(reject);
  });
  return bounded(done, undefined, diskMs(bytes));
}

/**
 * The result of a request. If the request fails, its transaction reports that. Where Chromium ends a transaction, it may drop its
 * requests before it tells the reason: such a failure is not the reason, and the transaction waits for that.
 * @param {IDBRequest} request
 */
const result = (request) => new Promise((resolve) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = (event) => {
    if (request.error?.name === "InvalidStateError") event.preventDefault();
  };
});

/** @param {IDBTransactionMode} mode @param {IDBTransactionDurability} durability */
async function begun(mode, durability) {
  for (let again = true; ; again = false) {
    const own = connected(), database = await own;
    try {
      return database.transaction(storeName, mode, { durability });
    } catch (error) {
      if (!again) throw error;
      forget(own, database); // the browser is closing the connection
    }
  }
}

/** The keys of a folder. @param {string} root @param {string} folder */
const within = (root, folder) => IDBKeyRange.bound([root, folder], [root, folder, []]);

/** @param {string} root @param {string} folder @returns {Ask} */
const keys = (root, folder) => (files) => files.getAllKeys(within(root, folder));

/** The names in keys, separated by slashes. @param {string[][]} found */
const named = (found) => found.map((key) => key[2]).join("/");

/** The names in a folder, separated by slashes. @param {string} root @param {string} folder */
export async function list(root, folder) {
  return named((await transact("readonly", "relaxed", 0, keys(root, folder)))[0]);
}

/** No file that is read is larger. A file's size is not known before it is read. */
const largest = 64 << 20;

/** Whether there is such a file. @param {string} root @param {string} folder @param {string} name */
export async function exists(root, folder, name) {
  return (await transact("readonly", "relaxed", 0, (files) => files.count([root, folder, name])))[0] > 0;
}

/** The content of a file; undefined if there is none. @param {string} root @param {string} folder @param {string} name */
export async function read(root, folder, name) {
  return (await transact("readonly", "relaxed", largest, (files) => files.get([root, folder, name])))[0];
}

/** The storage for Go: the methods that its files need, and those of a SaveWriter. */
export class Database {
  /** @type {Map<number, Saving>} */
  #prepared = new Map();

  list = list;
  read = read;

  /** @param {string} root @param {string} folder @param {string} name @param {Uint8Array} content */
  write(root, folder, name, content) {
    return transact("readwrite", "strict", content.length, (files) => files.put(content, [root, folder, name]));
  }

  /** @param {string} root @param {string} folder @param {string} name */
  remove(root, folder, name) {
    return transact("readwrite", "relaxed", 0, (files) => files.delete([root, folder, name]));
  }

  /** Rejects if nothing can be stored here. @param {string} root */
  check(root) {
    const key = [root, "probe"];
    return transact("readwrite", "relaxed", 0, (files) => files.put("", key), (files) => files.delete(key));
  }

  /** Whether there are files of the root. It makes no database. @param {string} root */
  async holds(root) {
    const all = await bounded(indexedDB.databases(), undefined, diskMs(0));
    if (!all.some(({ name }) => name === databaseName)) return false;
    const [count] = await transact("readonly", "relaxed", 0, (files) => files.count(IDBKeyRange.bound([root], [root, []])));
    return count > 0;
  }

  /** No file has to be opened before a save. */
  async preopen() {}

  /** Begins to list the index folder. @param {number} id @param {string} root @param {string} name @param {string} index */
  prepare(id, root, name, index) {
    const listing = list(root, "index");
    listing.catch(() => undefined); // store reports it
    this.#prepared.set(id, { root, name, index, listing });
  }

  /**
   * Resolves with the length of the content in bytes, its SHA-256 and the listed names, as SaveWriter.store does.
   * @param {number} id @param {import("./savewriter.js").Content} content @param {string} note
   */
  async store(id, content, note) {
    const saving = this.#prepared.get(id);
    if (!saving) throw new DOMException("it was not prepared here", "InvalidStateError");
    try {
      const bytes = taken(content), sum = await sha256(bytes);
      saving.file = sealed(bytes, sum, note);
      return [bytes.length, sum, await saving.listing].join("/");
    } catch (error) {
      this.#prepared.delete(id);
      throw error;
    }
  }

  /**
   * Writes the content and the index in one transaction, and lists the index folder in it. The names therefore show
   * every editor that came before this write. Resolves with the names, or with the error if nothing was written. Without
   * an index it only ends the save.
   * @param {number} id @param {Uint8Array} [content] of the index
   */
  async finish(id, content) {
    const saving = this.#prepared.get(id);
    this.#prepared.delete(id);
    if (!saving?.file || !content) return undefined;
    const { root, name, index, file } = saving;
    try {
      const done = await transact("readwrite", "strict", file.length, (files) => files.put(file, [root, "history", name]),
        (files) => files.put(content, [root, "index", index]), keys(root, "index"));
      return named(done[2]);
    } catch (error) {
      if (/** @type {Error} */ (error).name === "TimeoutError") throw error; // it may still be written
      return error;
    }
  }

  /** Ends the connection of this thread. */
  close() {
    const own = connection;
    own?.then((database) => forget(own, database), () => undefined);
  }
}
