// Files for a Go program in a page. A page has no sync access handles, so a helper worker opens the files: Files is the
// page's side, serve the worker's. The worker ends with its page, and the browser then closes the worker's files.
//
// This module imports only its neighbours, so that Go's own tests can load it.

import { inDatabase } from "./databasedrafts.js";
import { Journals, precedes } from "./journal.js";
import { diskMs, Patience } from "./patience.js";
import { open, SaveWriter, taken } from "./savewriter.js";
import { Tables } from "./tables.js";

/** @typedef {import("./savewriter.js").SyncHandle} SyncHandle */
/** @typedef {"bind" | "write" | "seal" | "saved" | "release" | "merge" | "list" | "read" | "remove"} JournalMethod */
/** @typedef {{ file: number, do: string, args: unknown[] }} Ask */
/** @typedef {{ file: number, value?: unknown, error?: unknown }} Answer */

/** @type {JournalMethod[]} */
const journalMethods = ["bind", "write", "seal", "saved", "release", "merge", "list", "read", "remove"];

/** The time in which the helper's script must load, and the number of bytes from which a write gets more time. */
const loadMs = 30_000, much = 1 << 20;

/** The page's side. It starts the worker when it is first needed. */
export class Files {
  #start;
  /** @type {Worker | undefined} */
  #worker;
  #last = 0;
  /** @type {Map<number, {resolve: (value: any) => void, reject: (reason: unknown) => void, bytes: number}>} */
  #asked = new Map();
  #handles = 0;
  /** @type {Map<number, unknown[]>} the arguments of bind, by page */
  #bound = new Map();
  /** @type {Map<number, any[]>} the arguments of the last write, by page, unless its text is elsewhere by now */
  #written = new Map();
  /** @type {Map<string, unknown>} the file of locks that the worker knows, for each client */
  #tables = new Map();
  /** @type {Map<number, import("./journal.js").Entry>} the last entry that a page has sealed */
  #sealed = new Map();
  #own = new Journals();
  /** The pages and the folders whose drafts are in IndexedDB. @type {Set<unknown>} */
  #inDatabase = new Set();
  #may = true; // whether files of locks may stay open
  #bytes = 0; // in the requests that are not answered
  #heard = false; // whether the helper has answered before
  #patience = new Patience(() => this.#end(new DOMException("the helper worker did not answer in time", "TimeoutError")));

  /** @param {() => Worker} start */
  constructor(start) {
    this.#start = start;
  }

  /**
   * Opens a file. The result has the methods of a FileSystemSyncAccessHandle, but they return promises, and a buffer
   * passed to write no longer belongs to the caller. ended reports whether the worker has ended that had the file open.
   * @param {unknown} file a FileSystemFileHandle
   */
  async open(file) {
    const handle = ++this.#handles;
    /** @param {string} name @param {unknown[]} args */
    const ask = (name, ...args) => this.#ask(name, handle, ...args);
    const opened = ask("open", file), worker = this.#worker;
    await opened;
    return {
      ended: () => this.#worker !== worker,
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
   * Tables.swap in the worker. To send a file costs half a millisecond, so the worker remembers the last one of each client.
   * @type {(...args: Parameters<Tables["swap"]>) => Promise<Uint8Array | null>}
   */
  async swap(client, channel, file, ...step) {
    this.#worker ??= this.#run(); // a new worker knows no file
    const known = this.#tables.get(client) === file;
    this.#tables.set(client, file);
    return this.#ask("swap", client, channel, known ? undefined : file, ...step);
  }

  /** Tables.keep in the worker, if it runs. @param {boolean} may */
  keep(may) {
    this.#may = may;
    this.#worker?.postMessage({ file: 0, do: "keep", args: [may] });
  }

  /**
   * Opens a file and closes it at once; rejects if the file is already open.
   * @param {unknown} file a FileSystemFileHandle
   */
  probe(file) {
    return this.#ask("probe", file);
  }

  /** SaveWriter.preopen in the worker.
   * @param {string} root @param {string} [name] @param {string} [index] */
  preopen(root, name, index) {
    const asked = this.#ask("preopen", root, name, index);
    asked.catch(() => undefined); // the next save, if any, reports it
    return asked;
  }

  /** SaveWriter.prepare in the worker.
   * @param {number} id @param {string} root @param {string} name @param {string} index */
  prepare(id, root, name, index) {
    this.#ask("prepare", id, root, name, index).catch(() => undefined); // then store fails too
  }

  /** SaveWriter.store in the worker.
   * @param {number} id @param {import("./savewriter.js").Content} content @param {string} note */
  async store(id, content, note) {
    const bytes = taken(content);
    return this.#send("store", [id, { bytes }, note], [bytes.buffer]);
  }

  /** SaveWriter.finish in the worker.
   * @param {number} id @param {Uint8Array} [index] */
  finish(id, index) {
    return this.#ask("finish", id, index);
  }

  /**
   * A Journals in the worker. Contents are copied. Drafts in IndexedDB need no worker: this thread writes them, so that
   * the browser releases their locks together with those of the page. A worker ends later than its page.
   * @type {Pick<Journals, JournalMethod>}
   */
  get journals() {
    /** @param {JournalMethod} name */
    const asking = (name) => (/** @type {any[]} */ ...args) => {
      const [of, folder = of] = name === "bind" ? args : args.slice(0, 1);
      if (`${folder}`.startsWith(inDatabase)) this.#inDatabase.add(of);
      if (this.#inDatabase.has(of)) return /** @type {any} */ (this.#own)[name](...args);
      // This thread waits for other pages: a helper that waited for them would seem to be stuck.
      if (name === "merge") return this.#own.merge(args[0], args[1], () => this.#ask("journal", "mergeNow", ...args));
      const sealed = this.#sealed.get(of);
      if (name === "write" && precedes(args[1], sealed)) return Promise.resolve(sealed.number); // a worker that replaced another one does not know
      this.#remember(name, args);
      const asked = this.#ask("journal", name, ...args);
      if (name === "seal") asked.then(() => {
        this.#sealed.set(of, args[1]);
        if (precedes(this.#written.get(of)?.[1], args[1])) this.#written.delete(of);
      }, () => undefined); // its caller gets the error
      if (name === "bind") asked.catch(() => undefined); // the next request of this page reports it
      return asked;
    };
    return /** @type {any} */ (Object.fromEntries(journalMethods.map((name) => [name, asking(name)])));
  }

  /**
   * Remembers what a worker that replaces this one must know. A worker can stop in a file that was removed because
   * somebody cleared the storage. It had stored text there that the page holds for safe.
   * @param {JournalMethod} name @param {any[]} args
   */
  #remember(name, args) {
    const [of, draft, number] = args;
    if (name === "bind") this.#bound.set(of, args);
    else if (name === "write") this.#written.set(of, args);
    else if (name === "seal" || name === "release") this.#written.delete(of);
    else if (name === "saved" || name === "remove") {
      for (const [page, [, entry]] of this.#written) if (entry.draft === draft && entry.number <= number) this.#written.delete(page);
    }
  }

  /** Ends the worker; the browser closes its files. */
  close() {
    this.#own.close();
    this.#inDatabase.clear();
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
      this.#worker ??= this.#run(); // its exception rejects the promise
      let bytes = 0;
      for (const arg of [...args, .../** @type {ArrayBuffer[]} */ (transfer)]) bytes += /** @type {any} */ (arg)?.byteLength || /** @type {any} */ (arg)?.length || 0;
      this.#worker.postMessage({ file: ++this.#last, do: name, args }, transfer); // its exception rejects the promise, too
      this.#asked.set(this.#last, { resolve, reject, bytes });
      this.#bytes += bytes;
      if (this.#asked.size === 1 || bytes > much) this.#wait();
    });
  }

  /**
   * The helper has a request to answer. It does not answer while a file call blocks it, or when it is dead. Before its
   * first answer it may be loading.
   */
  #wait() {
    this.#patience.wait(this.#asked.size === 0 ? Infinity : diskMs(this.#bytes) + (this.#heard ? 0 : loadMs));
  }

  #run() {
    const worker = this.#start();
    this.#heard = false;
    this.#tables.clear();
    worker.onmessage = (/** @type {MessageEvent<Answer>} */ { data }) => {
      const asked = this.#asked.get(data.file);
      this.#asked.delete(data.file);
      this.#bytes -= asked?.bytes ?? 0;
      this.#heard = true;
      this.#wait();
      if (data.error) asked?.reject(data.error);
      else asked?.resolve(data.value);
    };
    worker.onerror = (event) => {
      event.preventDefault();
      this.#end(new DOMException(event.message || "the helper worker could not be loaded", "NetworkError"));
    };
    // A worker that replaces another one knows no page yet; requests wait until it does.
    for (const args of this.#bound.values()) worker.postMessage({ file: 0, do: "journal", args: ["bind", ...args] });
    for (const args of this.#written.values()) worker.postMessage({ file: 0, do: "journal", args: ["write", ...args] });
    this.#worker = worker;
    this.keep(this.#may);
    return worker;
  }

  /** @param {unknown} why */
  #end(why) {
    this.#worker?.terminate();
    this.#worker = undefined;
    this.#patience.stop();
    this.#bytes = 0;
    for (const { reject } of this.#asked.values()) reject(why);
    this.#asked.clear();
  }
}

const writer = new SaveWriter(), journals = new Journals(), tables = new Tables();

/** @type {Map<number, SyncHandle>} */
const handles = new Map();

/** @type {Map<string, unknown>} the last file of locks of each client */
const files = new Map();

/**
 * The worker's side: carries out the request in a message.
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
  if (name === "keep") return tables.keep(args[0]);
  if (name === "swap") {
    const [client, channel, file = files.get(client), ...step] = /** @type {Parameters<Tables["swap"]>} */ (args);
    files.set(client, file);
    return tables.swap(client, channel, file, ...step);
  }
  if (name === "probe") return (await open(args[0])).close();
  if (name === "preopen" || name === "prepare" || name === "store" || name === "finish") return /** @type {any} */ (writer)[name](...args);
  if (name === "journal") return /** @type {any} */ (journals)[args[0]](...args.slice(1));
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
