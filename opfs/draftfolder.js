// The drafts of a document in the origin private file system, in the form in which journal.js uses them.
//
// This module imports only its neighbours, so that Go's own tests can load it.

import { DraftFile } from "./draftfile.js";
import { callMs } from "./patience.js";
import { bounded, names, open } from "./savewriter.js";

/** The names by which engines say that a file is already open: Chromium and Firefox use the first, WebKit the second. */
const inUse = ["NoModificationAllowedError", "InvalidStateError"];

/** The drafts in a folder, which is made if it does not exist. */
export class DraftFolder {
  #parent;
  #dir;

  /** @param {FileSystemDirectoryHandle} parent @param {FileSystemDirectoryHandle} dir */
  constructor(parent, dir) {
    this.#parent = parent;
    this.#dir = dir;
  }

  /** @param {string} path */
  static async at(path) {
    let parent = await bounded(navigator.storage.getDirectory());
    for (const name of path.split("/")) parent = await bounded(parent.getDirectoryHandle(name, { create: true }));
    return new DraftFolder(parent, await bounded(parent.getDirectoryHandle("drafts", { create: true })));
  }

  /**
   * Opens a draft. Rejects with a NotFoundError if there is none, and with a NoModificationAllowedError if somebody else
   * keeps it open.
   * @param {string} draft @param {boolean} create @param {{ mode?: "read-only" }} [how]
   */
  async open(draft, create, how) {
    const file = await bounded(this.#dir.getFileHandle(draft, { create }));
    try {
      return new DraftFile(await open(file, how));
    } catch (error) {
      const { name, message } = /** @type {Error} */ (error);
      throw inUse.includes(name) ? new DOMException(message, inUse[0]) : error;
    }
  }

  /** Opens a draft to read it, as open does. Several pages may do so at once, in an engine that knows the mode. @param {string} draft */
  look(draft) { return this.open(draft, false, { mode: "read-only" }); }

  /** Rejects if the file of an open draft has lost its name: somebody has cleared the storage. @param {string} draft */
  async check(draft) { await bounded(this.#dir.getFileHandle(draft)); }

  /** The names of all drafts, separated by slashes. */
  names() { return bounded(names(this.#dir)); }

  /** Removes a draft that nobody has open. @param {string} draft */
  remove(draft) { return bounded(this.#dir.removeEntry(draft)); }

  /** The file of a generation; undefined if there is none. @param {string} id */
  async generation(id) {
    try {
      const history = await bounded(this.#parent.getDirectoryHandle("history"));
      const file = await bounded((await bounded(history.getFileHandle(id))).getFile());
      return new Uint8Array(await bounded(file.arrayBuffer(), undefined, callMs(file.size)));
    } catch (error) {
      if (/** @type {Error} */ (error).name !== "NotFoundError") throw error; // it may be read later
      return undefined;
    }
  }
}
