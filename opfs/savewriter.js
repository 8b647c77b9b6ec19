// Writes for AutoSave, in a worker: pages have no sync access handles.
//
// This module has no imports, so that Go's own tests can load it.

/** @typedef {{ read(b: Uint8Array, o: {at: number}): number, write(b: Uint8Array, o: {at: number}): number, truncate(n: number): void, getSize(): number, flush(): void, close(): void }} SyncHandle */
/** @typedef {{ bytes?: Uint8Array<ArrayBuffer> | undefined }} Content */
/** @typedef {{ history: FileSystemDirectoryHandle, index: FileSystemDirectoryHandle }} Folders */
/** @typedef {{ folders: Folders, content: FileSystemFileHandle, empty: FileSystemFileHandle }} Made */
/** @typedef {{ making: Promise<Made>, file: Promise<SyncHandle>, next: Promise<SyncHandle> }} Opened */
/** @typedef {Opened & { listing: Promise<string>, stored?: Promise<void>, begin?: () => void }} Saving */
/** @typedef {Opened & { name: string, index: string, timer: ReturnType<typeof setTimeout> }} Preopened */

/** How long the browser may take to make or to open a file, in milliseconds. */
const openMs = 2000;

/** How long files stay open for an expected save, in milliseconds: a user who goes on typing saves every two seconds. */
const preopenMs = 5000;

/**
 * Writes a generation and then the index that lists it, in three calls with one number: prepare, store and finish.
 * Three calls are few enough for callers in another thread.
 */
export class SaveWriter {
  /** @type {Map<string, Folders>} */
  #folders = new Map();
  /** @type {Map<number, Saving>} */
  #prepared = new Map();
  /** @type {Map<string, Preopened>} */
  #preopened = new Map();

  /**
   * Begins to open the new files <root>/history/<name> and <root>/index/<index> unless they are open already, and to
   * list the index folder.
   * @param {number} id
   * @param {string} root
   * @param {string} name
   * @param {string} index
   */
  prepare(id, root, name, index) {
    const preopened = this.#take(root);
    const files = preopened?.index === index && preopened.name === name ? preopened : opened(this.#make(root, name, index));
    if (preopened && files !== preopened) closeAll(preopened);
    const listing = bounded(files.making.then(({ folders }) => names(folders.index)));
    listing.catch(() => undefined); // store reports it
    this.#prepared.set(id, { ...files, listing });
  }

  /**
   * Opens the files of a save that is expected soon, and closes the ones that were expected before. Without names it
   * only closes. Resolves when those are closed. The new ones are closed if the save does not come.
   * @param {string} root
   * @param {string} [name]
   * @param {string} [index]
   */
  async preopen(root, name, index) {
    const before = this.#take(root);
    if (name && index) {
      const making = pause().then(() => this.#make(root, name, index)); // callers that wait for the previous save go first
      const preopened = { ...opened(making), name, index, timer: setTimeout(() => this.preopen(root), preopenMs) };
      this.#preopened.set(root, preopened);
      // The save itself tries again, but not to open a file that may still be opened.
      preopened.next.catch((error) => {
        if (error.name !== "TimeoutError" && this.#preopened.get(root) === preopened) this.preopen(root);
      });
    }
    if (before) await closeAll(before);
  }

  /**
   * Begins to write the content. Resolves before the write ends, with the length in bytes, the SHA-256 and the listed
   * names: "<bytes>/<hex>/<name>/<name>…". If it rejects, empty files may be left. It rejects with a TimeoutError if
   * the browser has not made a file in time.
   * @param {number} id
   * @param {Content} content loses its bytes
   * @param {string} note for the seal
   */
  async store(id, content, note) {
    const saving = this.#of(id);
    try {
      const bytes = taken(content);
      const sum = await sha256(bytes); // the files are opened meanwhile
      const told = [bytes.length, sum, await saving.listing].join("/");
      // The answer is sent first, because writing keeps the thread busy.
      const asked = new Promise((/** @type {(value?: unknown) => void} */ begin) => { saving.begin = begin; });
      saving.stored = Promise.race([asked, pause()]).then(() => stored(saving, bytes, seal(bytes.length, sum, note)));
      saving.stored.catch(() => undefined); // finish reports it
      return told;
    } catch (error) {
      await this.finish(id);
      throw error;
    }
  }

  /**
   * Waits until the content is stored and then writes the index. Resolves, once the index is stored, with the names in
   * its folder. Rejects with the error that prevented the index; empty or torn files may then be left. A TimeoutError
   * says that the browser has not opened a file, and may never do so. Without an index it only closes the files.
   * @param {number} id
   * @param {Uint8Array} [index]
   */
  async finish(id, index) {
    const saving = this.#of(id);
    this.#prepared.delete(id);
    if (!index) return closeAll(saving);
    try {
      saving.begin?.();
      await saving.stored;
    } catch (error) {
      await closeAll(saving);
      return error;
    }
    try {
      const next = await saving.next;
      write(next, index);
      next.close();
      return await bounded(names((await saving.making).folders.index));
    } finally {
      closeAll(saving); // runs while the names are listed: flushed files can be read before
    }
  }

  /** @param {number} id */
  #of(id) {
    const saving = this.#prepared.get(id);
    if (!saving) throw new DOMException("it was not prepared here", "InvalidStateError");
    return saving;
  }

  /** @param {string} root */
  #take(root) {
    const preopened = this.#preopened.get(root);
    this.#preopened.delete(root);
    clearTimeout(preopened?.timer);
    return preopened;
  }

  /** @param {string} root @param {string} name @param {string} index */
  #make(root, name, index) {
    const known = this.#folders.get(root);
    const make = async () => made(await this.#open(root), name, index);
    const making = known && bounded(made(known, name, index)).catch((error) => {
      if (error.name !== "NotFoundError") throw error;
      return bounded(make()); // somebody has removed the folders
    });
    return making || bounded(make());
  }

  /** @param {string} root */
  async #open(root) {
    const folders = await openFolders(root);
    this.#folders.set(root, folders);
    return folders;
  }
}

/** @param {Folders} folders @param {string} name @param {string} next @returns {Promise<Made>} */
async function made(folders, name, next) {
  const [content, empty] = await Promise.all([
    folders.history.getFileHandle(name, { create: true }), folders.index.getFileHandle(next, { create: true })]);
  return { folders, content, empty };
}

/** @param {Promise<Made>} making @returns {Opened} */
function opened(making) {
  // The files are opened one after the other, and before anything is written: Chromium writes at half the speed while
  // it opens a file. When both were opened at once, Chromium failed to open one of them three times in 4,000 saves;
  // this way once in 13,000.
  const file = making.then(({ content }) => open(content));
  const next = file.then(async () => open((await making).empty));
  for (const one of [file, next]) one.catch(() => undefined); // finish reports it
  return { making, file, next };
}

/** @param {Content} content */
export function taken(content) {
  const { bytes } = content;
  if (!bytes) throw new DOMException("the content was given before", "InvalidStateError");
  content.bytes = undefined;
  return bytes;
}

/** Lets pending tasks of this thread run first. */
const pause = () => new Promise((done) => { setTimeout(done, 0); });

/**
 * The end of a generation's file, as Seal in Go's package autosave writes it.
 * @param {number} bytes @param {string} sum @param {string} note
 */
function seal(bytes, sum, note) {
  const encoder = new TextEncoder();
  const noted = String(encoder.encode(note).length).padStart(6, "0");
  return encoder.encode(`${note}\nholdfast ${noted} ${String(bytes).padStart(16, "0")} ${sum}\n`);
}

/**
 * The file of a generation.
 * @param {Uint8Array} bytes @param {string} sum @param {string} note
 */
export function sealed(bytes, sum, note) {
  const end = seal(bytes.length, sum, note);
  const file = new Uint8Array(bytes.length + end.length);
  file.set(bytes);
  file.set(end, bytes.length);
  return file;
}

/**
 * The content of a generation's file without its seal, if it has one.
 * @param {Uint8Array} file
 */
export function unsealed(file) {
  const end = new TextDecoder("latin1").decode(file.subarray(-99)); // the length of a seal without its note
  const [, noted, bytes] = /^\nholdfast (\d{6}) (\d{16}) [0-9a-f]{64}\n$/.exec(end) ?? [];
  return Number(bytes) + Number(noted) + end.length === file.length ? file.subarray(0, Number(bytes)) : file;
}

/** @param {Opened} files */
async function closeAll({ file, next }) {
  await Promise.allSettled([file, next].map(async (one) => (await one).close()));
}

/** @param {Saving} saving @param {Uint8Array<ArrayBuffer>} bytes @param {Uint8Array} end */
async function stored({ file, next }, bytes, end) {
  await next;
  write(await file, bytes, end);
}

/** @param {string} root */
async function openFolders(root) {
  let folder = await navigator.storage.getDirectory();
  for (const name of root.split("/")) folder = await folder.getDirectoryHandle(name, { create: true });
  return { history: await folder.getDirectoryHandle("history", { create: true }), index: await folder.getDirectoryHandle("index", { create: true }) };
}

/** @param {FileSystemDirectoryHandle} folder */
export async function names(folder) {
  const all = [];
  for await (const name of /** @type {any} */ (folder).keys()) all.push(name);
  return all.join("/");
}

/**
 * Writes all parts of a new file, the last part first, so that the browser reserves space once for all of them.
 * @param {SyncHandle} handle
 * @param {Uint8Array[]} parts
 */
function write(handle, ...parts) {
  let at = parts.reduce((sum, part) => sum + part.length, 0);
  for (const part of parts.reverse()) {
    at -= part.length;
    if (handle.write(part, { at }) !== part.length) throw new DOMException("not all of it was written", "QuotaExceededError");
  }
  handle.flush();
}

/** In lower-case hex. @param {Uint8Array<ArrayBuffer>} bytes */
export async function sha256(bytes) {
  const sum = await crypto.subtle.digest("SHA-256", bytes);
  return Array.from(new Uint8Array(sum), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * Opens a file. A handle that arrives too late is closed.
 * @param {any} file @param {{ mode?: "read-only" }} [how]
 * @returns {Promise<SyncHandle>}
 */
export async function open(file, how) {
  if (!file.createSyncAccessHandle) throw new DOMException("createSyncAccessHandle is missing", "NotSupportedError");
  const opening = file.createSyncAccessHandle(how);
  return bounded(opening, () => opening.then((/** @type {SyncHandle} */ handle) => handle.close(), () => undefined));
}

/**
 * Calls abandon and rejects with a TimeoutError if the browser does not answer in time.
 * @template T
 * @param {Promise<T>} answer
 * @param {() => void} [abandon]
 * @param {number} [ms]
 * @returns {Promise<T>}
 */
export function bounded(answer, abandon, ms = openMs) {
  /** @type {ReturnType<typeof setTimeout>} */
  let timer;
  const late = new Promise((_, reject) => {
    const over = () => {
      abandon?.();
      reject(new DOMException("the browser's file storage does not answer in time; restart the browser where that lasts", "TimeoutError"));
    };
    // The time has two halves. After the thread stood still, the first timer fires at once, and the browser's answers
    // have the second half.
    timer = setTimeout(() => { timer = setTimeout(over, ms / 2); }, ms / 2);
  });
  return /** @type {Promise<T>} */ (Promise.race([answer, late])).finally(() => clearTimeout(timer));
}
