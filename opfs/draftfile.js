// The file of a draft, and nothing else: what its bytes and its header mean, and how they are written so that no end of the
// program and no loss of power leaves a mix of two snapshots. It has no imports, so that tests can load it alone.
//
// Format 1. Numbers are little-endian. Blocks are 4,096 bytes, so that a torn block of the disk damages one part only.
//
//   block 0, 1, 2   a slot each, of 1,024 bytes:
//       0   "HFDRAFT1"
//       8   sum of the slot's bytes from 16 on
//      16   length of the JSON text in bytes (uint32)
//      20   JSON text (see Header), then zeros
//   block 3 and on  contents; each begins at a block, at the offset that its slot names
//
// The valid slot with the highest "order" is the draft: its sum and the sum of its content must both be right.
// A slot with "bytes": -1 says that everything up to its number is saved elsewhere: the draft is empty.
//
// A snapshot goes to a slot and to blocks that neither the newest whole snapshot nor the last flushed one uses. The
// content is written first, then the slot. A program that ends between two writes therefore leaves the older or the
// newer snapshot. A power loss may drop unflushed writes in any order; it leaves the last flushed snapshot, or a later
// one.

/** @typedef {import("./savewriter.js").SyncHandle} SyncHandle */

/**
 * The header of a slot: a snapshot's number, origin and checksums.
 * @typedef {object} Header
 * @property {number} number of the snapshot; a page counts them up
 * @property {string} base id of the generation that the text was typed on; "" for an empty document
 * @property {string} cause why the draft exists; "" while its page lives
 * @property {string} ownerId
 * @property {string} ownerName
 * @property {number} at when the snapshot was taken, in Unix milliseconds
 * @property {number} bytes length of the content; -1 for none
 * @property {string} [discarded] sum of the content that a user has discarded
 */

/** @typedef {Header & { slot: number, order: number, offset: number, sum: string }} Stored */

const block = 4096, slots = 3, slotBytes = 1024, textAt = 20;
const magic = "HFDRAFT1";
/** The length of the slots. */
export const headLength = slots * block;

const encoder = /* @__PURE__ */ new TextEncoder(), decoder = /* @__PURE__ */ new TextDecoder();

/** An open draft file. */
export class DraftFile {
  #handle;
  /** @type {Stored[]} the whole snapshots, the newest first */
  #whole;
  /** @type {Stored | undefined} the newest snapshot that survives a power loss */
  #flushed;
  /** Whether it is unknown which snapshots an earlier program has flushed. */
  #inherited;

  /** @param {SyncHandle} handle this object owns it from now on */
  constructor(handle) {
    this.#handle = handle;
    const found = [];
    for (let slot = 0; slot < slots; slot++) {
      const stored = parse(handle, slot);
      if (stored) found.push(stored);
    }
    this.#whole = found.sort((a, b) => b.order - a.order).filter((stored) => stored.bytes < 0 || sum(this.#read(stored)) === stored.sum);
    this.#inherited = this.#whole.length > 0;
  }

  /** The newest snapshot; undefined in a new file. */
  get header() { return this.#whole[0]; }

  /** Number of the newest snapshot; 0 in a new file. */
  get number() { return this.header?.number ?? 0; }

  /** Whether there is text that is not saved elsewhere. */
  get filled() { return (this.header?.bytes ?? -1) >= 0; }

  /**
   * The content of the newest snapshot, or of the snapshot with this number. Undefined if there is none.
   * @param {number} [number]
   */
  content(number = this.number) {
    const stored = this.#whole.find((one) => one.number === number && one.bytes >= 0);
    return stored && this.#read(stored);
  }

  /**
   * Makes this the newest snapshot. A call without content makes the draft empty. If it throws, the previous snapshot
   * stays.
   * @param {Omit<Header, "bytes">} header
   * @param {Uint8Array} [content]
   */
  put(header, content) {
    if (this.#inherited) this.flush();
    const kept = [this.header, this.#flushed].flatMap((one) => one ?? []);
    const slot = [0, 1, 2].find((one) => kept.every((other) => other.slot !== one)) ?? 0;
    const order = (this.header?.order ?? 0) + 1;
    const stored = { ...header, order, bytes: content ? content.length : -1, slot, offset: content ? room(kept, content.length) : 0, sum: content ? sum(content) : "" };
    // The slot's former snapshot is gone, whether or not the writes below succeed.
    this.#whole = this.#whole.filter((one) => kept.includes(one));
    if (content) write(this.#handle, content, stored.offset);
    write(this.#handle, spelled(stored), slot * block);
    this.#whole.unshift(stored);
  }

  /** Makes the newest snapshot survive a loss of power. */
  flush() {
    if (this.#flushed === this.header) return;
    this.#handle.flush();
    this.#flushed = this.header;
    this.#inherited = false;
  }

  /** Frees the space of the contents, once the draft is empty. */
  trim() {
    this.flush();
    this.#whole.length = 1;
    this.#handle.truncate(headLength);
  }

  close() { this.#handle.close(); }

  /** @param {Stored} stored */
  #read(stored) {
    const bytes = new Uint8Array(Math.max(0, stored.bytes));
    return bytes.subarray(0, this.#handle.read(bytes, { at: stored.offset }));
  }
}

/** How long the file of a discarded draft stays, in milliseconds: no browser keeps a page in its back/forward cache for longer. */
const discardedMs = 3_600_000;

/** The state of a draft, in a file or in IndexedDB.
 * @typedef {{ filled: boolean, header: Header | undefined }} State */

/** Whether a draft is of no use any more. @param {State} draft */
export const spent = ({ filled, header }) => !filled && !(header?.discarded && Date.now() - header.at < discardedMs);

/** Whether a user has discarded this text of the draft. @param {State} draft @param {Uint8Array} text */
export const isDiscarded = ({ filled, header }, text) => !filled && header?.discarded === sum(text);

/** Makes a draft empty, unless it has a higher number.
 * @param {State & Pick<import("./journal.js").DraftFile, "content" | "put">} draft @param {number} number @param {boolean} [discards] */
export async function empty(draft, number, discards) {
  const { header, filled } = draft;
  if (!header || !filled || header.number > number) return;
  const content = discards && draft.content();
  await draft.put({ ...header, number, ...(content && { at: Date.now(), discarded: sum(content) }) });
}

/**
 * The first blocks that are free for a content of this length.
 * @param {Stored[]} kept
 * @param {number} bytes
 */
function room(kept, bytes) {
  let offset = slots * block;
  for (const other of kept.filter((one) => one.bytes > 0).sort((a, b) => a.offset - b.offset)) {
    if (offset + bytes <= other.offset) break;
    offset = Math.max(offset, Math.ceil((other.offset + other.bytes) / block) * block);
  }
  return offset;
}

/** @param {SyncHandle} handle @param {Uint8Array} bytes @param {number} at */
function write(handle, bytes, at) {
  if (handle.write(bytes, { at }) !== bytes.length) throw new DOMException("not all of it was written", "QuotaExceededError");
}

/** @param {Stored} stored */
function spelled(stored) {
  const { slot, ...fields } = stored; // the slot's position is its number
  let text = encoder.encode(JSON.stringify(fields));
  // Shorten a long name until the header fits into the slot.
  for (let name = fields.ownerName; text.length > slotBytes - textAt && name; text = encoder.encode(JSON.stringify({ ...fields, ownerName: name }))) {
    name = Array.from(name).slice(0, -1).join("");
  }
  const bytes = new Uint8Array(slotBytes);
  bytes.set(text, textAt);
  new DataView(bytes.buffer).setUint32(16, text.length, true);
  bytes.set(encoder.encode(magic));
  const digits = sum(bytes.subarray(16));
  for (let i = 0; i < 8; i++) bytes[8 + i] = parseInt(digits.slice(2 * i, 2 * i + 2), 16);
  return bytes;
}

/**
 * The newest valid slot of a file, whose content may be damaged.
 * @param {Uint8Array} head the first bytes of the file
 */
export function newest(head) {
  return [0, 1, 2].flatMap((slot) => parsed(head.slice(slot * block, slot * block + slotBytes), slot) ?? []).sort((a, b) => b.order - a.order)[0];
}

/** @param {SyncHandle} handle @param {number} slot @returns {Stored | undefined} */
function parse(handle, slot) {
  const bytes = new Uint8Array(slotBytes);
  return handle.read(bytes, { at: slot * block }) === slotBytes ? parsed(bytes, slot) : undefined;
}

/** @param {Uint8Array} bytes @param {number} slot @returns {Stored | undefined} */
function parsed(bytes, slot) {
  if (bytes.length !== slotBytes || decoder.decode(bytes.subarray(0, 8)) !== magic) return undefined;
  const digits = Array.from(bytes.subarray(8, 16), (byte) => byte.toString(16).padStart(2, "0")).join("");
  if (digits !== sum(bytes.subarray(16))) return undefined;
  const length = new DataView(bytes.buffer).getUint32(16, true);
  return { ...JSON.parse(decoder.decode(bytes.subarray(textAt, textAt + length))), slot };
}

/**
 * A sum of 64 bits, as 16 digits: two multiplicative hashes over words of 32 bits. It distinguishes torn and stale
 * writes from whole ones at about a gigabyte a second. SHA-256 would be an asynchronous call, and a page that ends
 * cannot wait for it.
 * @param {Uint8Array} bytes
 */
export function sum(bytes) {
  const whole = bytes.length >> 2;
  const words = bytes.byteOffset % 4 ? new Int32Array(bytes.slice(0, whole * 4).buffer) : new Int32Array(bytes.buffer, bytes.byteOffset, whole);
  let a = bytes.length ^ 0x1e3779b9, b = bytes.length ^ 0x05ebca6b;
  for (let i = 0; i < whole; i++) {
    const word = words[i] ?? 0;
    a = Math.imul(a ^ word, 0x9e3779b1);
    a ^= a >>> 15;
    b = Math.imul((b << 13 | b >>> 19) + word | 0, 0x85ebca77);
  }
  for (let i = whole * 4; i < bytes.length; i++) a = Math.imul(a ^ (bytes[i] ?? 0), 0x9e3779b1);
  a = Math.imul(a ^ a >>> 15 ^ b, 0x85ebca77);
  b = Math.imul(b ^ b >>> 16 ^ a, 0x9e3779b1);
  return [a, b].map((half) => (half >>> 0).toString(16).padStart(8, "0")).join("");
}
