// The JavaScript half of package opfs. Savings write what AutoSave saves.
//
// The rest is for a Go program in a page. A page has no sync access handles, so a helper
// worker opens them: Files is the page's side, serve the worker's. When the page ends, its
// worker ends with it, and the browser closes what that had open.
//
// It has no imports, so that Go's own tests can load it too.

/** @typedef {{ read(b: Uint8Array, o: {at: number}): number, write(b: Uint8Array, o: {at: number}): number, truncate(n: number): void, getSize(): number, flush(): void, close(): void }} SyncHandle */
/** @typedef {{ at: number, data: Uint8Array }} Patch */
/** @typedef {{ file: number, do: string, args: unknown[] }} Ask */
/** @typedef {{ file: number, value?: unknown, error?: unknown }} Answer */

/** The page's side. It starts the worker when it is first needed. */
export class Files {
  #start;
  /** @type {Worker | undefined} */
  #worker;
  #last = 0;
  /** @type {Map<number, {resolve: (value: any) => void, reject: (reason: unknown) => void}>} */
  #asked = new Map();
  #handles = 0;

  /** @param {() => Worker} start */
  constructor(start) {
    this.#start = start;
  }

  /**
   * Opens a file. What it resolves with has the methods of a FileSystemSyncAccessHandle, but
   * they return promises, and a buffer given to write is not the caller's any more.
   * @param {unknown} file a FileSystemFileHandle
   */
  async open(file) {
    const handle = ++this.#handles;
    /** @param {string} name @param {unknown[]} args */
    const ask = (name, ...args) => this.#ask(name, handle, ...args);
    await ask("open", file);
    return {
      getSize: () => ask("getSize"),
      flush: () => ask("flush"),
      close: () => ask("close"),
      /** @param {number} size */
      truncate: (size) => ask("truncate", size),
      /** @param {Uint8Array} buffer @param {{at: number}} options */
      write: (buffer, options) => ask("write", buffer, options),
      /** @param {Uint8Array} buffer @param {{at: number}} options */
      read: async (buffer, options) => {
        const data = await ask("read", buffer.length, options);
        buffer.set(data);
        return data.length;
      },
    };
  }

  /**
   * Applies patches to a file, and cuts it to size where size is not 0, if it has the content
   * that is expected; then it resolves with null. If not, it changes nothing and resolves with
   * the content, cut at limit. The file is open for no longer than that takes.
   * @param {unknown} file a FileSystemFileHandle
   * @param {Uint8Array} expected
   * @param {Patch[]} patches
   * @param {number} size
   * @param {number} limit
   * @returns {Promise<Uint8Array | null>}
   */
  swap(file, expected, patches, size, limit) {
    return this.#ask("swap", file, expected, patches, size, limit);
  }

  /**
   * Opens a file and closes it at once; rejects where somebody has it open.
   * @param {unknown} file a FileSystemFileHandle
   */
  probe(file) {
    return this.#ask("probe", file);
  }

  /** Savings.prepare in the worker.
   * @param {number} id @param {string} root @param {string} name @param {string} index */
  prepare(id, root, name, index) {
    this.#ask("prepare", id, root, name, index).catch(() => undefined); // store fails too, then
  }

  /** Savings.store in the worker; the content is not the caller's any more.
   * @param {number} id @param {Uint8Array} content */
  store(id, content) {
    return this.#send("store", [id, content], [content.buffer]);
  }

  /** Savings.finish in the worker.
   * @param {number} id @param {Uint8Array} [index] */
  finish(id, index) {
    return this.#ask("finish", id, index);
  }

  /** Ends the worker; the browser closes what it had open. */
  close() {
    this.#end(new DOMException("the helper worker was ended", "AbortError"));
    this.#start = () => { throw new DOMException("the helper worker was ended", "AbortError"); };
  }

  /** @param {string} name @param {unknown[]} args @returns {Promise<any>} */
  #ask(name, ...args) {
    return this.#send(name, args, []);
  }

  /** @param {string} name @param {unknown[]} args @param {Transferable[]} transfer @returns {Promise<any>} */
  #send(name, args, transfer) {
    return new Promise((resolve, reject) => {
      this.#worker ??= this.#run(); // what it throws is the answer
      this.#asked.set(++this.#last, { resolve, reject });
      this.#worker.postMessage({ file: this.#last, do: name, args }, transfer);
    });
  }

  #run() {
    const worker = this.#start();
    worker.onmessage = (/** @type {MessageEvent<Answer>} */ { data }) => {
      const asked = this.#asked.get(data.file);
      this.#asked.delete(data.file);
      if (data.error) asked?.reject(data.error);
      else asked?.resolve(data.value);
    };
    worker.onerror = (event) => {
      event.preventDefault();
      this.#end(new DOMException(event.message || "the helper worker could not be loaded", "NetworkError"));
    };
    return worker;
  }

  /** @param {unknown} why */
  #end(why) {
    this.#worker?.terminate();
    this.#worker = undefined;
    for (const { reject } of this.#asked.values()) reject(why);
    this.#asked.clear();
  }
}

/** @typedef {{ history: FileSystemDirectoryHandle, index: FileSystemDirectoryHandle }} Folders */
/** @typedef {{ opening: Promise<SyncHandle>[], ready: Promise<{ file: SyncHandle, next: SyncHandle, listed: string, folder: FileSystemDirectoryHandle }> }} Saving */

/** How long the browser may take to make or to open a file, in milliseconds. */
const openMs = 2000;

/**
 * Writes a generation and then the index that has it: prepare, store and finish, with one number
 * for the three. They are few for the sake of those who ask from far away.
 */
export class Savings {
  /** @type {Map<string, Promise<Folders>>} */
  #folders = new Map();
  /** @type {Map<number, Saving>} */
  #prepared = new Map();

  /**
   * Begins to open new files, <root>/history/<name> and <root>/index/<index>, and to list the
   * folder of the second.
   * @param {number} id
   * @param {string} root
   * @param {string} name
   * @param {string} index
   */
  prepare(id, root, name, index) {
    const make = () => inTime(this.#open(root).then((folders) => made(folders, name, index)));
    this.#prepared.set(id, opened(make().catch((error) => {
      if (error.name !== "NotFoundError") throw error;
      this.#folders.delete(root); // somebody has removed the folders
      return make();
    })));
  }

  /**
   * Writes the content. Resolves, once it is stored, with its SHA-256 and the names that were
   * listed: "<hex>/<name>/<name>…". Where it rejects, empty or torn files may be left; with a
   * TimeoutError because the browser has not opened a file, and may never do so.
   * @param {number} id
   * @param {Uint8Array<ArrayBuffer>} content
   */
  async store(id, content) {
    try {
      const { ready } = this.#of(id);
      // Some engines have made the checksum when this returns: the files are opened meanwhile.
      const digest = crypto.subtle.digest("SHA-256", content);
      const { file, listed } = await ready;
      write(file, content);
      return `${hex(await digest)}/${listed}`;
    } catch (error) {
      await this.finish(id);
      throw error;
    }
  }

  /**
   * Writes the index, and resolves with the names in its folder as they are when it is stored.
   * Without an index it only closes the files.
   * @param {number} id
   * @param {Uint8Array} [index]
   */
  async finish(id, index) {
    const saving = this.#of(id);
    this.#prepared.delete(id);
    if (!index) return closeAll(saving);
    const { next, folder } = await saving.ready;
    write(next, index);
    return names(folder);
  }

  /** @param {number} id */
  #of(id) {
    const saving = this.#prepared.get(id);
    if (!saving) throw new DOMException("it was not prepared here", "InvalidStateError");
    return saving;
  }

  /** @param {string} root @returns {Promise<Folders>} */
  #open(root) {
    let folders = this.#folders.get(root);
    if (!folders) {
      folders = openFolders(root);
      folders.catch(() => this.#folders.delete(root));
      this.#folders.set(root, folders);
    }
    return folders;
  }
}

/** @param {Folders} folders @param {string} name @param {string} next */
async function made({ history, index }, name, next) {
  const listing = inTime(names(index));
  listing.catch(() => undefined); // where a file cannot be made, that is told
  const files = await Promise.all([history.getFileHandle(name, { create: true }), index.getFileHandle(next, { create: true })]);
  return { files, listing, folder: index };
}

/** @param {ReturnType<typeof made>} making @returns {Saving} */
function opened(making) {
  // One after the other: at once, one was never opened in Chromium three times in 4,000 saves; so once in 13,000.
  const first = making.then(({ files }) => open(files[0]));
  const second = first.then(async () => open((await making).files[1]));
  const all = async () => {
    const { listing, folder } = await making;
    const [file, next, listed] = await Promise.all([first, second, listing]);
    return { file, next, listed, folder };
  };
  const ready = all();
  for (const one of [second, ready]) one.catch(() => undefined); // store tells
  return { opening: [first, second], ready };
}

/** @param {Saving} saving */
async function closeAll({ opening }) {
  await Promise.allSettled(opening.map(async (one) => (await one).close()));
}

/** @param {string} root */
async function openFolders(root) {
  let folder = await navigator.storage.getDirectory();
  for (const name of root.split("/")) folder = await folder.getDirectoryHandle(name, { create: true });
  return { history: await folder.getDirectoryHandle("history", { create: true }), index: await folder.getDirectoryHandle("index", { create: true }) };
}

/** @param {FileSystemDirectoryHandle} folder */
async function names(folder) {
  const all = [];
  for await (const name of /** @type {any} */ (folder).keys()) all.push(name);
  return all.join("/");
}

/**
 * Writes all that a new file has, and closes it.
 * @param {SyncHandle} handle
 * @param {Uint8Array} content
 */
function write(handle, content) {
  try {
    if (handle.write(content, { at: 0 }) !== content.length) throw new DOMException("not all of it was written", "QuotaExceededError");
    handle.flush();
  } finally {
    handle.close();
  }
}

/** @param {ArrayBuffer} buffer */
const hex = (buffer) => Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, "0")).join("");

const savings = new Savings();

/** @type {Map<number, SyncHandle>} */
const handles = new Map();

/**
 * The worker's side: does what a message asks.
 * @param {Ask} ask
 * @returns {Promise<Answer>}
 */
export async function serve({ file, do: name, args }) {
  try {
    return { file, value: await work(name, args) };
  } catch (error) {
    return { file, error };
  }
}

/** @param {string} name @param {any[]} args */
async function work(name, args) {
  if (name === "swap") return swap.apply(undefined, /** @type {Parameters<typeof swap>} */ (args));
  if (name === "probe") return (await open(args[0])).close();
  if (name === "prepare" || name === "store" || name === "finish") return /** @type {any} */ (savings)[name](...args);
  const [id, first, options] = args;
  if (name === "open") {
    handles.set(id, await open(first));
    return;
  }
  const handle = /** @type {SyncHandle} */ (handles.get(id));
  switch (name) {
    case "getSize": return handle.getSize();
    case "flush": return handle.flush();
    case "truncate": return handle.truncate(first);
    case "write": return handle.write(first, options);
    case "read": {
      const buffer = new Uint8Array(first);
      return buffer.subarray(0, handle.read(buffer, options));
    }
    case "close":
      handles.delete(id);
      return handle.close();
  }
}

/**
 * Opens a file. A handle that comes too late is closed.
 * @param {any} file
 * @returns {Promise<SyncHandle>}
 */
async function open(file) {
  if (!file.createSyncAccessHandle) throw new DOMException("createSyncAccessHandle is missing", "NotSupportedError");
  const opening = file.createSyncAccessHandle();
  return inTime(opening, () => opening.then((/** @type {SyncHandle} */ handle) => handle.close(), () => undefined));
}

/**
 * Rejects with a TimeoutError, after it has called abandon, where the browser does not answer in time.
 * @template T
 * @param {Promise<T>} answer
 * @param {() => void} [abandon]
 * @returns {Promise<T>}
 */
function inTime(answer, abandon) {
  /** @type {ReturnType<typeof setTimeout>} */
  let timer;
  const late = new Promise((_, reject) => {
    const over = () => {
      abandon?.();
      reject(new DOMException("the browser has not opened a file in time", "TimeoutError"));
    };
    // In two halves: after a time in which the thread stood still, the browser's answers have the second.
    timer = setTimeout(() => { timer = setTimeout(over, openMs / 2); }, openMs / 2);
  });
  return /** @type {Promise<T>} */ (Promise.race([answer, late])).finally(() => clearTimeout(timer));
}

/**
 * From the opening to the closing nothing waits.
 * @param {unknown} file
 * @param {Uint8Array} expected
 * @param {Patch[]} patches
 * @param {number} size
 * @param {number} limit
 */
async function swap(file, expected, patches, size, limit) {
  const handle = await open(file);
  try {
    const content = new Uint8Array(Math.min(handle.getSize(), limit));
    handle.read(content, { at: 0 });
    if (content.length !== expected.length || content.some((byte, i) => byte !== expected[i])) return content;
    for (const { at, data } of patches) {
      if (handle.write(data, { at }) !== data.length) throw new DOMException("not all of it was written", "QuotaExceededError");
      handle.flush();
    }
    if (size) {
      handle.truncate(size);
      handle.flush();
    }
    return null;
  } finally {
    handle.close();
  }
}
