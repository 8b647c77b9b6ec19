// The origin private file system in memory, with faults that a test asks for.

import type { Clock, Owner } from "./clock";

interface File { bytes: Uint8Array; open: Owner | undefined }
type Folder = Map<string, Folder | File>;

const isFolder = (entry: Folder | File | undefined): entry is Folder => entry instanceof Map;
const fail = (name: string, why: string): DOMException => new DOMException(why, name);

/** Faults of the storage. */
export interface Faults {
  /** The number of the next writes that fail. */
  failing: number;
  /** How long it takes to open a file. */
  delayMs: number;
  /** The number of bytes that all files may have. */
  room: number;
}

export class Files {
  readonly faults: Faults = { failing: 0, delayMs: 0, room: Infinity };
  readonly #root: Folder = new Map();
  readonly #clock: Clock;
  readonly #open = new Set<File>();

  constructor(clock: Clock) { this.#clock = clock; }

  /** The number of bytes of all files. */
  get used(): number {
    const size = (folder: Folder): number => [...folder.values()].reduce((sum, entry) => sum + (isFolder(entry) ? size(entry) : entry.bytes.length), 0);
    return size(this.#root);
  }

  /** Removes everything, as a browser does that needs the room. */
  clear(): void { this.#root.clear(); }

  /** Closes the files that an owner has open. */
  forget(owner: Owner): void {
    for (const file of this.#open) if (file.open === owner) this.#close(file);
  }

  /** The root folder as a page or worker sees it. Only a worker opens files for writing. */
  root(owner: Owner, worker: boolean): object { return this.#folder(this.#root, "", owner, worker); }

  #close(file: File): void {
    file.open = undefined;
    this.#open.delete(file);
  }

  #folder(folder: Folder, name: string, owner: Owner, worker: boolean): object {
    const child = (wanted: string, create: boolean, make: () => Folder | File, wantsFolder: boolean): Folder | File => {
      let entry = folder.get(wanted);
      if (!entry) {
        if (!create) throw fail("NotFoundError", `there is no ${wanted}`);
        folder.set(wanted, entry = make());
      }
      if (isFolder(entry) !== wantsFolder) throw fail("TypeMismatchError", `${wanted} is of the other kind`);
      return entry;
    };
    const list = async function* <T>(each: (entry: [string, Folder | File]) => T) {
      for (const entry of [...folder]) yield each(entry);
    };
    const handle = ([key, entry]: [string, Folder | File]): object =>
      (isFolder(entry) ? this.#folder(entry, key, owner, worker) : this.#file(entry, key, owner, worker));
    return {
      kind: "directory", name,
      getDirectoryHandle: async (wanted: string, { create = false } = {}) =>
        this.#folder(child(wanted, create, () => new Map(), true) as Folder, wanted, owner, worker),
      getFileHandle: async (wanted: string, { create = false } = {}) =>
        this.#file(child(wanted, create, () => ({ bytes: new Uint8Array(), open: undefined }), false) as File, wanted, owner, worker),
      removeEntry: async (wanted: string, { recursive = false } = {}) => {
        const entry = folder.get(wanted);
        if (!entry) throw fail("NotFoundError", `there is no ${wanted}`);
        if (isFolder(entry) && entry.size && !recursive) throw fail("InvalidModificationError", `${wanted} is not empty`);
        if (!isFolder(entry) && entry.open) throw fail("NoModificationAllowedError", `${wanted} is open`);
        folder.delete(wanted);
      },
      keys: () => list(([key]) => key), values: () => list(handle), entries: () => list((entry) => [entry[0], handle(entry)]),
    };
  }

  #file(file: File, name: string, owner: Owner, worker: boolean): object {
    const bytes = (): Uint8Array => file.bytes.slice();
    return {
      kind: "file", name,
      getFile: async () => ({ name, size: file.bytes.length, arrayBuffer: async () => bytes().buffer, text: async () => new TextDecoder().decode(bytes()) }),
      ...(worker && { createSyncAccessHandle: async () => {
        if (this.faults.delayMs) await new Promise<void>((done) => this.#clock.set(owner, done, this.faults.delayMs));
        if (file.open || !owner.alive) throw fail("NoModificationAllowedError", `${name} is open`);
        file.open = owner;
        this.#open.add(file);
        return this.#access(file);
      } }),
    };
  }

  #access(file: File): object {
    const written = (at: number, part: Uint8Array): number => {
      if (this.faults.failing > 0) {
        this.faults.failing--;
        throw fail("UnknownError", "the test lets this write fail");
      }
      const more = Math.max(0, at + part.length - file.bytes.length);
      if (more > 0 && this.used + more > this.faults.room) throw fail("QuotaExceededError", "the storage is full");
      if (more > 0) file.bytes = joined(file.bytes, at + part.length);
      file.bytes.set(part, at);
      return part.length;
    };
    return {
      read: (into: Uint8Array, { at = 0 } = {}) => {
        const part = file.bytes.subarray(at, at + into.byteLength);
        into.set(part);
        return part.length;
      },
      write: (part: Uint8Array, { at = 0 } = {}) => written(at, part),
      truncate: (size: number) => { file.bytes = size > file.bytes.length ? joined(file.bytes, size) : file.bytes.slice(0, size); },
      getSize: () => file.bytes.length,
      flush: () => undefined,
      close: () => this.#close(file),
    };
  }
}

/** The bytes in an array of another size. */
function joined(bytes: Uint8Array, size: number): Uint8Array {
  const larger = new Uint8Array(size);
  larger.set(bytes);
  return larger;
}
