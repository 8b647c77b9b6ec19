// Writes the drafts of a page while the user types, in a worker: pages have no sync access handles. Each draft is one
// file, <folder>/drafts/<draft id>; draftfile.js defines its format. <folder> also contains index/ and history/, so it
// belongs to one document and to one place of storage: this browser, or one server.
//
// The file of a living page is open, and nobody else can open it. A file that can be opened therefore belongs to a page
// that is gone, or that has released it. Where there are no files, a draft is a record in IndexedDB, with the same
// rules: databasedrafts.js.
//
// This module imports only its neighbours, so that Go's own tests can load it.

import { alone, DatabaseDrafts, inDatabase } from "./databasedrafts.js";
import { applied, basis, equal, unchanged } from "./difference.js";
import { empty, isDiscarded, spent } from "./draftfile.js";
import { DraftFolder } from "./draftfolder.js";
import { inTurn, looked, opened } from "./opendraft.js";
import { callMs } from "./patience.js";
import { bounded } from "./savewriter.js";

/** @typedef {import("./draftfile.js").Header} Header */
/** @typedef {DraftFolder | DatabaseDrafts} Drafts */
/** @typedef {Awaited<ReturnType<Drafts["open"]>>} DraftFile */
/** @typedef {string | Uint8Array} Content text is stored as UTF-8 */
/** @typedef {{ draft: string, number: number, base: string, at: number, cause?: string }} Entry a snapshot of a page */
/** @typedef {{ folder: string, ownerId: string, ownerName: string }} Bound */
/** @typedef {{ bound: Promise<Bound>, bind: (to: Bound) => void, turn: Promise<unknown>, draft: string, seen: number, sealed?: { draft: string, number: number, base: string }, saved?: { draft: string, number: number, last: number, base: string | undefined }, changed?: string | undefined, file?: DraftFile | undefined, opening?: Promise<unknown> | undefined, dir?: Drafts, timer?: ReturnType<typeof setTimeout> }} Page */
/** @typedef {Header & { id: string }} Found */
/** @typedef {"done" | "busy" | "unreadable" | "failed"} Merged */

/**
 * The difference between a snapshot and a stored one that has `length` units: its first `prefix` and its last `suffix`
 * units, with `insert` between them. Units are UTF-16 code units, or bytes if `binary`; each character of `insert` then
 * stands for the byte of the same number. The stored one is the snapshot `number` of the same draft, or the content of
 * the generation `base`.
 * @typedef {{ number?: number, base?: string, length: number, prefix: number, suffix: number, insert: string }} Difference
 */

/**
 * The entry that a page wrote to localStorage as it ended: differences to each snapshot that may be the newest in the
 * file. A difference with neither `number` nor `base` builds on nothing.
 * @typedef {Omit<Entry, "cause"> & { ownerId: string, binary: boolean, differences: Difference[] }} Rescue
 */

/** Whether a snapshot was taken before its page sealed the draft. One with a cause is written nevertheless.
 * @param {Entry | undefined} entry @param {Page["sealed"]} sealed @returns {sealed is NonNullable<Page["sealed"]>} */
export function precedes(entry, sealed) {
  return !!entry && !entry.cause && sealed?.draft === entry.draft && entry.number <= sealed.number;
}

/** How long typing must pause before the file is flushed, in milliseconds. */
const flushMs = 1000;

/** How long a file may be written before the next check that it still has its name, in milliseconds. */
const seenMs = 1000;

const encoder = new TextEncoder();

/**
 * The drafts that this worker's pages write, and those that other pages have left. A page is known by the number of its
 * AutoSave.
 */
export class Journals {
  /** @type {Map<number, Page>} */
  #pages = new Map();
  /** The entries that are being merged. @type {Map<string, Promise<Merged>>} */
  #merging = new Map();
  /** The number of the entry of a draft that could not be merged. @type {Map<string, number>} */
  #unmerged = new Map();

  /**
   * Says where the drafts of a page are and who its owner is. Earlier requests of the page wait for this.
   * @param {number} id @param {string} folder @param {string} ownerId @param {string} ownerName
   */
  bind(id, folder, ownerId, ownerName) {
    const page = this.#page(id);
    const to = { folder, ownerId, ownerName };
    page.bind(to);
    page.bound = Promise.resolve(to);
  }

  /**
   * Stores a snapshot, unless the file contains it or a later one. Resolves with the number that the file then has.
   * Rejects with a TimeoutError if that takes long, so that the page keeps the text elsewhere. It may still be stored. Rejects if a user has
   * discarded the text: the file has nothing on which a later text could build.
   * @param {number} id @param {Entry} entry @param {Content} content
   */
  async write(id, entry, content) {
    const stored = await bounded(this.#write(id, entry, content), undefined, callMs(content.length));
    if (stored < entry.number) throw new DOMException("a user has discarded this text", "NotAllowedError");
    return stored;
  }

  /** @param {number} id @param {Entry} entry @param {Content} content */
  #write(id, entry, content) {
    return this.#inTurn(id, async (page) => {
      const { number, base, at, cause = "" } = entry;
      if (precedes(entry, page.sealed)) return page.sealed.number; // its file stays closed, so that every page sees the draft
      const file = await this.#file(page, entry.draft);
      const { ownerId, ownerName } = await page.bound;
      const known = file.number;
      // A snapshot that the file already has is written again if its cause is new.
      if (number > known || (number === known && file.filled && cause)) {
        const bytes = typeof content === "string" ? encoder.encode(content) : content;
        if (isDiscarded(file, bytes)) return known;
        const before = page.changed !== entry.draft && file.content();
        // The sealed draft is gone, and the base is still the same: another page has saved the draft, in a generation that this page does not know.
        const elsewhere = !known && page.saved?.draft === entry.draft && page.saved.base === base;
        if (elsewhere || (before && !equal(before, bytes))) page.changed = entry.draft;
        await put(page, { number, base, cause, ownerId, ownerName, at }, bytes);
        clearTimeout(page.timer);
        page.timer = setTimeout(() => void this.#rest(id), flushMs);
      }
      return file.number;
    });
  }

  /** Flushes the file when typing pauses. Never rejects.
   * @param {number} id */
  #rest(id) {
    return this.#inTurn(id, async (page) => {
      await this.#look(page);
      await page.file?.flush();
    }).catch(() => undefined); // the previous snapshot stays, and the next one is tried
  }

  /**
   * Makes sure that the file still has its name. After somebody cleared the storage, the browser goes on writing the
   * removed file, and text in it would be lost with the page. Therefore the file is made again; if that is not possible,
   * look rejects.
   * @param {Page} page
   */
  async #look(page) {
    const { file, draft, dir } = page;
    if (!file || !dir) return;
    try {
      await dir.check(draft);
      page.seen = performance.now();
    } catch {
      const { header } = file, content = file.filled ? file.content() : undefined;
      page.file = undefined;
      await quietly(() => file.close());
      if (!header || !content) return;
      const made = await this.#file(page, draft);
      if (made.number < header.number) await made.put(header, content);
    }
  }

  /**
   * Stores a snapshot and closes the file, so that other pages see it. Resolves with the draft; undefined if all of it is saved, or if
   * it equals its base and has always done so: a page may mark what it loads. If it has changed meanwhile, a save of that may be under way.
   * `given` is the number of the first snapshot that Go may be saving: the file may have missed it.
   * @param {number} id @param {Entry} entry @param {Content} content @param {number} [given]
   * @returns {Promise<Found | undefined>}
   */
  async seal(id, entry, content, given = entry.number) {
    await this.#write(id, entry, content);
    return this.#inTurn(id, async (page) => {
      const { saved } = page; // a snapshot that was taken before its page knew of a save has an older base than that
      if (given < entry.number || (saved?.draft === entry.draft && saved.number < entry.number && entry.number <= saved.last)) page.changed = entry.draft;
      const file = await this.#file(page, entry.draft);
      if (page.changed !== entry.draft && page.dir && await unchanged(page.dir, file)) await empty(file, file.number);
      const found = file.header && { ...file.header, id: entry.draft };
      if (file.filled) await file.flush();
      page.sealed = { draft: entry.draft, number: Math.max(file.number, entry.number), base: entry.base }; // the file's is lower if the text is discarded
      await this.#close(page);
      return found && found.bytes >= 0 ? found : undefined;
    });
  }

  /**
   * Empties a draft up to a number, because a commit contains it. `last` is the number of the last snapshot that the page has taken by then.
   * @param {number} id @param {string} draft @param {number} number @param {number} [last]
   */
  saved(id, draft, number, last = number) {
    return this.#inTurn(id, async (page) => {
      page.saved = { draft, number, last, base: page.sealed?.base };
      if (page.draft !== draft) return;
      if (page.file) {
        await empty(page.file, number);
        if (!page.file.filled) page.changed = undefined;
      } else await this.remove((await page.bound).folder, draft, number); // the page has sealed it
    });
  }

  /** Closes the file of a page, and removes it if it is empty.
   * @param {number} id */
  release(id) { return this.#inTurn(id, (page) => this.#close(page)); }

  /** Releases the files of all pages. */
  close() {
    for (const id of this.#pages.keys()) this.release(id).catch(() => undefined); // nobody waits for it
  }

  /**
   * Brings the entry of a page that is gone into the file of its draft. Resolves with "done" if the entry is no longer
   * needed, with "busy" if the page lives, and with "unreadable" if the snapshot it builds on is gone. A request that
   * comes while the entry is being merged, in this or another page, waits for that. Resolves with "failed" if the storage
   * refuses: the entry stays, and the caller still waits for other entries. Rejects if another page takes too long, or if the other thread has
   * ended: then the caller removes no draft, because `remove` does not know of the entry.
   * @param {string} folder @param {Rescue} rescue @param {() => Promise<Merged>} [run] mergeNow, here or in another thread
   * @returns {Promise<Merged>}
   */
  merge(folder, rescue, run = () => this.mergeNow(folder, rescue)) {
    const key = [folder, rescue.draft, rescue.number].join("/");
    const merging = this.#merging.get(key) ?? alone(folder, rescue.draft, run).finally(() => this.#merging.delete(key));
    this.#merging.set(key, merging);
    return merging;
  }

  /** Merge for a caller that keeps other pages from it. @param {string} folder @param {Rescue} rescue @returns {Promise<Merged>} */
  async mergeNow(folder, rescue) {
    const key = [folder, rescue.draft].join("/");
    this.#unmerged.set(key, rescue.number); // until this has succeeded
    try {
      const merged = await inTurn(folder, rescue.draft, () => this.#merge(folder, rescue));
      if (merged !== "busy") this.#unmerged.delete(key);
      return merged;
    } catch {
      return "failed";
    }
  }

  /** @param {string} folder @param {Rescue} rescue @returns {Promise<Merged>} */
  async #merge(folder, rescue) {
    const { draft, number, base, at, ownerId, binary, differences } = rescue;
    const dir = await drafts(folder), file = await opened(dir, draft, true);
    if (!file) return "busy";
    try {
      if (file.number >= number) return "done";
      for (const difference of differences) {
        const stored = await basis(dir, file, difference);
        const text = stored && applied(stored, difference, binary);
        if (!text) continue;
        if (isDiscarded(file, text)) return "done";
        const { ownerName = "" } = file.header ?? {};
        await file.put({ number, base, cause: "closed", ownerId, ownerName, at }, text);
        await file.flush();
        return "done";
      }
      return "unreadable";
    } finally {
      await file.close();
    }
  }

  /**
   * The drafts in a folder whose files nobody has open, the newest first. Removes the files of empty ones.
   * @param {string} folder
   * @returns {Promise<Found[]>}
   */
  async list(folder) {
    const dir = await drafts(folder);
    const mine = await this.#open(folder);
    const others = (await dir.names()).split("/").filter((name) => name && !mine.has(name));
    const found = await Promise.all(others.map(async (id) => {
      const look = looked(folder, dir, id, (file) => ({ header: file.filled && file.header, over: spent(file) }));
      const { header, over } = await look.catch(() => undefined) ?? {}; // an unreadable draft hides no other draft
      if (header) return [{ ...header, id }];
      if (over) await removed(dir, id);
      return [];
    }));
    return found.flat().sort((a, b) => b.at - a.at);
  }

  /** The text of a draft; undefined if there is none.
   * @param {string} folder @param {string} draft */
  async read(folder, draft) {
    const mine = (await this.#open(folder)).get(draft);
    if (mine) return mine.content();
    return looked(folder, await drafts(folder), draft, (file) => file.content());
  }

  /**
   * Removes a draft, unless it has a higher number, somebody else keeps it open, or an entry that could not be merged may build on it. If a
   * page has the draft open here, the page goes on with an empty draft. If a user discards it, an empty file stays for an hour: the page that
   * shows the text may be asleep, and makes no draft of the same text again. Rejects if a draft that is discarded stays.
   * @param {string} folder @param {string} draft @param {number} number @param {boolean} [discards]
   */
  async remove(folder, draft, number, discards) {
    const mine = (await this.#open(folder)).get(draft);
    if (mine) return empty(mine, number);
    const dir = await drafts(folder);
    const file = number < (this.#unmerged.get([folder, draft].join("/")) ?? 0) ? undefined : await opened(dir, draft, false);
    if (!file) {
      if (!discards || await dir.check(draft).then(() => false, ({ name }) => name === "NotFoundError")) return;
      throw new DOMException("somebody else has the draft open, or its last text is not stored yet", "NoModificationAllowedError");
    }
    let over = false;
    try {
      await empty(file, number, discards); // its page may open it again before it is removed
      if (discards && !file.filled) await file.trim();
      over = spent(file);
    } finally {
      await file.close();
    }
    if (over) await removed(dir, draft);
  }

  /** @param {number} id */
  #page(id) {
    let page = this.#pages.get(id);
    if (!page) {
      /** @type {(to: Bound) => void} */
      let bind = () => undefined;
      /** @type {Promise<Bound>} */
      const bound = new Promise((resolve) => { bind = resolve; });
      this.#pages.set(id, page = { bound, bind, turn: bound, draft: "", seen: 0 });
    }
    return page;
  }

  /**
   * Runs a function for a page after the page's earlier requests.
   * @template T
   * @param {number} id @param {(page: Page) => Promise<T>} run
   * @returns {Promise<T>}
   */
  #inTurn(id, run) {
    const page = this.#page(id);
    const turn = page.turn.then(() => run(page));
    page.turn = turn.catch(() => undefined);
    return turn;
  }

  /** The files of a folder that are open here.
   * @param {string} folder */
  async #open(folder) {
    /** @type {Map<string, DraftFile>} */
    const open = new Map();
    for (const page of this.#pages.values()) {
      await page.opening; // the file would be neither open here nor readable
      if (page.file && (await page.bound).folder === folder) open.set(page.draft, page.file);
    }
    return open;
  }

  /** @param {Page} page @param {string} draft */
  async #file(page, draft) {
    if (page.file && page.draft === draft && performance.now() - page.seen > seenMs) await this.#look(page);
    if (page.file && page.draft === draft) return page.file;
    await this.#close(page);
    const opening = this.#opened(page, draft);
    page.opening = opening.catch(() => undefined);
    return opening;
  }

  /** @param {Page} page @param {string} draft */
  async #opened(page, draft) {
    const dir = page.dir = await drafts((await page.bound).folder);
    const file = await opened(dir, draft, true);
    if (!file) throw new DOMException("the file of the draft is open elsewhere", "NoModificationAllowedError");
    page.draft = draft;
    page.seen = performance.now();
    return page.file = file;
  }

  /** @param {Page} page */
  async #close(page) {
    const { file, draft, dir } = page;
    clearTimeout(page.timer);
    page.file = undefined;
    if (!file || !dir) return;
    const over = spent(file);
    await file.close();
    if (over) await removed(dir, draft); // in the same task: the page may be frozen after it, while another page fills the draft
  }
}

/** @param {Page} page @param {Omit<Header, "bytes">} header @param {Uint8Array} content */
async function put(page, header, content) {
  const { file } = page;
  try {
    await file?.put(header, content);
  } catch (error) {
    if (/** @type {Error} */ (error).name !== "QuotaExceededError") {
      // Somebody has cleared the storage: the next snapshot makes the file again.
      page.file = undefined;
      await quietly(() => file?.close());
    }
    throw error;
  }
}

/** @param {() => unknown} step its failure breaks no guarantee */
async function quietly(step) {
  try {
    await step();
  } catch {
    // The previous snapshot stays, and the next one is tried.
  }
}

/** @param {string} folder @returns {Promise<Drafts>} */
const drafts = async (folder) => (folder.startsWith(inDatabase) ? new DatabaseDrafts(folder) : DraftFolder.at(folder));

/** Removes a draft. It may be gone, its page may have opened it again, or the storage may not answer.
 * @param {Drafts} dir @param {string} draft */
const removed = (dir, draft) => quietly(() => dir.remove(draft));
