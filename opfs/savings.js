// What writes for AutoSave, in a worker: pages have no sync access handles.
//
// It has no imports, so that Go's own tests can load it too.

/** @typedef {{ read(b: Uint8Array, o: {at: number}): number, write(b: Uint8Array, o: {at: number}): number, truncate(n: number): void, getSize(): number, flush(): void, close(): void }} SyncHandle */
/** @typedef {{ bytes?: Uint8Array<ArrayBuffer> | undefined }} Content */
/** @typedef {{ history: FileSystemDirectoryHandle, index: FileSystemDirectoryHandle }} Folders */
/** @typedef {{ folders: Folders, content: FileSystemFileHandle, empty: FileSystemFileHandle }} Made */
/** @typedef {{ making: Promise<Made>, file: Promise<SyncHandle>, next: Promise<SyncHandle> }} Opened */
/** @typedef {Opened & { listing: Promise<string>, stored?: Promise<void>, begin?: () => void }} Saving */
/** @typedef {Opened & { name: string, index: string, timer: ReturnType<typeof setTimeout> }} Expected */

/** How long the browser may take to make or to open a file, in milliseconds. */
const openMs = 2000;

/** How long files are kept open for a save that is expected, in milliseconds: who goes on typing saves every two seconds. */
const expectMs = 5000;

/**
 * Writes a generation and then the index that has it: prepare, store and finish, with one number
 * for the three. They are few for the sake of those who ask from far away.
 */
export class Savings {
  /** @type {Map<string, Folders>} */
  #folders = new Map();
  /** @type {Map<number, Saving>} */
  #prepared = new Map();
  /** @type {Map<string, Expected>} */
  #expected = new Map();

  /**
   * Begins to open new files, <root>/history/<name> and <root>/index/<index>, where they are not open
   * already, and to list the folder of the second.
   * @param {number} id
   * @param {string} root
   * @param {string} name
   * @param {string} index
   */
  prepare(id, root, name, index) {
    const expected = this.#take(root);
    const files = expected?.index === index && expected.name === name ? expected : opened(this.#make(root, name, index));
    if (expected && files !== expected) closeAll(expected);
    const listing = bounded(files.making.then(({ folders }) => names(folders.index)));
    listing.catch(() => undefined); // store tells
    this.#prepared.set(id, { ...files, listing });
  }

  /**
   * Opens the files of a save that is expected soon, in place of those that were expected before; without
   * names, none. Resolves when those are closed. The new ones are closed when the save does not come.
   * @param {string} root
   * @param {string} [name]
   * @param {string} [index]
   */
  async expect(root, name, index) {
    const before = this.#take(root);
    if (name && index) {
      const making = pause().then(() => this.#make(root, name, index)); // whoever waits for the save before goes first
      const expected = { ...opened(making), name, index, timer: setTimeout(() => this.expect(root), expectMs) };
      this.#expected.set(root, expected);
      // The save tries again itself; but not to open what may be opened yet.
      expected.next.catch((error) => {
        if (error.name !== "TimeoutError" && this.#expected.get(root) === expected) this.expect(root);
      });
    }
    if (before) await closeAll(before);
  }

  /**
   * Begins to write the content. Resolves, before that is done, with its length in bytes, its SHA-256
   * and the names that were listed: "<bytes>/<hex>/<name>/<name>…". Where it rejects, empty files may be
   * left; with a TimeoutError because the browser has not made a file in time.
   * @param {number} id
   * @param {Content} content which has the bytes no more
   * @param {string} note for the seal
   */
  async store(id, content, note) {
    const saving = this.#of(id);
    try {
      const bytes = taken(content);
      // Some engines have made the checksum when this returns: the files are made meanwhile.
      const digest = crypto.subtle.digest("SHA-256", bytes);
      const sum = hex(await digest);
      const told = [bytes.length, sum, await saving.listing].join("/");
      // What is told goes first: writing keeps the thread busy.
      const asked = new Promise((/** @type {(value?: unknown) => void} */ begin) => { saving.begin = begin; });
      saving.stored = Promise.race([asked, pause()]).then(() => stored(saving, bytes, seal(bytes.length, sum, note)));
      saving.stored.catch(() => undefined); // finish tells
      return told;
    } catch (error) {
      await this.finish(id);
      throw error;
    }
  }

  /**
   * Writes the index once the content is stored, and resolves with the names in its folder as they are
   * when it is stored too; or with the error because of which it was not begun. Then, empty or torn files
   * may be left; a TimeoutError says that the browser has not opened a file, and may never do so.
   * Without an index it only closes the files.
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
      closeAll(saving); // takes as long as the names: what is flushed can be read before
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
    const expected = this.#expected.get(root);
    this.#expected.delete(root);
    clearTimeout(expected?.timer);
    return expected;
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
  // One after the other, and before anything is written: Chromium writes at half the speed while it opens a
  // file. At once, one was never opened in Chromium three times in 4,000 saves; so once in 13,000.
  const file = making.then(({ content }) => open(content));
  const next = file.then(async () => open((await making).empty));
  for (const one of [file, next]) one.catch(() => undefined); // finish tells
  return { making, file, next };
}

/** @param {Content} content */
export function taken(content) {
  const { bytes } = content;
  if (!bytes) throw new DOMException("the content was given before", "InvalidStateError");
  content.bytes = undefined;
  return bytes;
}

/** Lets go first what waits for this thread. */
const pause = () => new Promise((done) => { setTimeout(done, 0); });

/**
 * The end of a generation's file: Seal of Go's autosave.
 * @param {number} bytes @param {string} sum @param {string} note
 */
function seal(bytes, sum, note) {
  const encoder = new TextEncoder();
  const noted = String(encoder.encode(note).length).padStart(6, "0");
  return encoder.encode(`${note}\nholdfast ${noted} ${String(bytes).padStart(16, "0")} ${sum}\n`);
}

/**
 * The content of a generation's file, which a seal may end.
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
 * Writes all that a new file has, the last part first: so the browser is asked once for the room of all of them.
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

/** @param {ArrayBuffer} buffer */
const hex = (buffer) => Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, "0")).join("");

/**
 * Opens a file. A handle that comes too late is closed.
 * @param {any} file
 * @returns {Promise<SyncHandle>}
 */
export async function open(file) {
  if (!file.createSyncAccessHandle) throw new DOMException("createSyncAccessHandle is missing", "NotSupportedError");
  const opening = file.createSyncAccessHandle();
  return bounded(opening, () => opening.then((/** @type {SyncHandle} */ handle) => handle.close(), () => undefined));
}

/**
 * Rejects with a TimeoutError, after it has called abandon, where the browser does not answer in time.
 * @template T
 * @param {Promise<T>} answer
 * @param {() => void} [abandon]
 * @returns {Promise<T>}
 */
export function bounded(answer, abandon) {
  /** @type {ReturnType<typeof setTimeout>} */
  let timer;
  const late = new Promise((_, reject) => {
    const over = () => {
      abandon?.();
      reject(new DOMException("the browser's file storage does not answer in time; restart the browser where that lasts", "TimeoutError"));
    };
    // In two halves: after a time in which the thread stood still, the browser's answers have the second.
    timer = setTimeout(() => { timer = setTimeout(over, openMs / 2); }, openMs / 2);
  });
  return /** @type {Promise<T>} */ (Promise.race([answer, late])).finally(() => clearTimeout(timer));
}
