// Reads the last saved content of a document before the Go program is loaded. docs/files.md describes the files.
//
// Go's autosave reads the same files and repairs them. This reader repairs nothing: it returns a content only if Go would
// load the same content. TestEarlyReader in tests/e2e compares the two.

/**
 * The current generation: its id, its content, and the draft that it contains up to a number.
 * @typedef {{ base: string, content: Uint8Array<ArrayBuffer>, draft?: string, number?: number }} Saved
 */
/** @typedef {{ id: string, savedAt?: number, bytes: number, sha256: string, draft?: string, number?: number }} Generation */

const encoder = new TextEncoder();

/** @param {number} n @param {number} digits */
const hex = (n, digits) => n.toString(16).padStart(digits, "0");

/**
 * Spells a text in UTF-8. A byte that is not plain is "~" and two hexadecimal digits.
 * @param {string} text @param {RegExp} plain
 */
const spelled = (text, plain) => Array.from(encoder.encode(text), (byte) => {
  const character = String.fromCharCode(byte);
  return plain.test(character) ? character : `~${hex(byte, 2)}`;
}).join("");

/**
 * Returns the folder of a document in the origin private file system.
 * @param {string} root of the project
 * @param {string} server its URL; "" for none
 * @param {readonly string[]} path
 */
export function folderOf(root, server, path) {
  let folder = root;
  if (server) {
    let name = spelled(server.replace(/\/$/, "").replace(/^https:\/\//, ""), /[a-z\d._-]/i).replace(/~../g, (byte) => byte.toUpperCase());
    folder += "/server-";
    for (; name.length > 200; name = `~+${name.slice(200)}`) folder += `${name.slice(0, 200)}/`;
    folder += name;
  }
  const name = path.map((component) => spelled(component, /[a-z\d_-]/)).join("+");
  return `${folder}${name && "/documents"}${name.replace(/.{1,200}/g, "/=$&")}/autosave`;
}

/**
 * Returns what was saved last in a folder; null if nothing was saved and Go would load nothing. Undefined, or rejected,
 * if Go might load another content: a file is damaged, unknown, or gone.
 * @param {string} folder
 * @returns {Promise<Saved | null | undefined>}
 */
export async function saved(folder) {
  const root = await found(navigator.storage.getDirectory(), folder);
  const [index, history] = await Promise.all([found(root, "index"), found(root, "history")]);
  if (!index) return await filled(history) ? undefined : null;
  if (!history) return undefined;
  const names = await listed(index, /^(\d+)-(\d+)\.json$/);
  names.sort((a, b) => b.first - a.first || b.second - a.second);
  /** @type {number[]} */
  const above = []; // tokens of the empty or damaged indexes above the newest valid one
  let sure = true; // no index has content
  for (const { name, first } of names) {
    const file = await read(index, name);
    sure &&= file?.length === 0;
    if (!file) continue;
    const generations = parsed(file);
    if (!generations) above.push(first);
    else if (above.length && await rebuilt(history, generations, above)) return undefined;
    else return current(history, generations.at(-1));
  }
  return !sure || await filled(history) ? undefined : null;
}

/** The names in a folder. @param {FileSystemDirectoryHandle | undefined} folder @returns {AsyncIterable<string>} */
export const entries = (folder) => /** @type {any} */ (folder)?.keys() ?? [];

/**
 * Returns a folder in another one; undefined if it does not exist.
 * @param {FileSystemDirectoryHandle | Promise<FileSystemDirectoryHandle> | undefined} folder @param {string} path
 */
export async function found(folder, path) {
  let at = await folder;
  for (const name of path.split("/")) at = await at?.getDirectoryHandle(name).catch(missing);
  return at;
}

/** @param {Error} error */
function missing(error) {
  if (error.name !== "NotFoundError") throw error;
  return undefined;
}

/**
 * Whether a file of a folder has content, or may have some: Go makes empty files for the next save in advance.
 * @param {FileSystemDirectoryHandle | undefined} folder
 */
async function filled(folder) {
  if (folder) for await (const name of entries(folder)) if ((await opened(folder, name))?.size !== 0) return true;
  return false;
}

/** @param {FileSystemDirectoryHandle} history @param {Generation | undefined} generation @returns {Promise<Saved | undefined>} */
async function current(history, generation) {
  if (!generation) return undefined;
  const { id: base, bytes, sha256, draft, number } = generation;
  const content = (await read(history, base))?.slice(0, bytes); // a seal may follow
  if (content?.length !== bytes) return undefined;
  const sum = Array.from(new Uint8Array(await crypto.subtle.digest("SHA-256", content)), (byte) => hex(byte, 2)).join("");
  return sum === sha256 ? { base, content, draft, number } : undefined;
}

/**
 * Reports whether Go may find a newer generation in the history than the ones that the valid index lists: the damaged
 * indexes above it may have listed it. Go makes files for the next save in advance; those are empty.
 * @param {FileSystemDirectoryHandle} history @param {Generation[]} generations @param {number[]} above
 */
async function rebuilt(history, generations, above) {
  const known = generations.map(({ id, savedAt }) => {
    const [made, token] = id.split("-").map(whole);
    return { token: /** @type {number} */ (token), at: whole(savedAt ?? made) };
  });
  for (const { name, first, second } of await listed(history, /^(\d+)-(\d+)$/)) {
    const newer = above.includes(second) && !known.some(({ token, at }) => token > second || (token === second && at >= first));
    if (newer && (await opened(history, name))?.size) return true;
  }
  return false;
}

/**
 * The files of a folder whose names have two numbers.
 * @param {FileSystemDirectoryHandle} folder @param {RegExp} pattern
 */
async function listed(folder, pattern) {
  const all = [];
  for await (const name of entries(folder)) {
    const [, first, second] = pattern.exec(name) ?? [];
    // Go ignores numbers in any other spelling.
    if ([first, second].every((digits) => digits && /^(0|[1-9]\d{0,17})$/.test(digits))) all.push({ name, first: whole(first), second: whole(second) });
  }
  return all;
}

/** @param {unknown} digits */
function whole(digits) {
  const n = Number(digits);
  if (!Number.isSafeInteger(n)) throw new RangeError("the number is too large for JavaScript");
  return n;
}

/**
 * Opens a file. Returns undefined if it does not exist any more, or is being written.
 * @param {FileSystemDirectoryHandle} folder @param {string} name
 */
export async function opened(folder, name) {
  return folder.getFileHandle(name).then((handle) => handle.getFile()).catch(absent);
}

/** @param {FileSystemDirectoryHandle} folder @param {string} name */
async function read(folder, name) {
  const buffer = await (await opened(folder, name))?.arrayBuffer().catch(absent);
  return buffer && new Uint8Array(buffer);
}

/** @param {Error} error */
function absent(error) {
  if (error.name !== "NotFoundError" && error.name !== "NotReadableError") throw error;
  return undefined;
}

const number = "(?:0|[1-9]\\d{0,17})";
const quoted = String.raw`"(?:[^"\\\x00-\x1f]|\\["\\]|\\u00[01][\da-f])+"`;

/** @param {number} format */
const pattern = (format) => {
  const generation = `\\{"id":"${number}-${number}"${format > 1 ? `,"savedAt":${number}` : ""},"bytes":${number},"sha256":"[\\da-f]{64}"${
    format > 2 ? `(?:,"draft":${quoted})?(?:,"number":[1-9]\\d{0,17})?(?:,"ownerName":${quoted})?(?:,"name":${quoted})?` : ""}\\}`;
  return new RegExp(`^\\{"format":${format},"generations":\\[(?:${generation}(?:,${generation})*)?\\],"crc32":"([\\da-f]{8})"\\}\\n$`);
};

/** The length of an index's end, from the checksum on. */
const checked = `],"crc32":"00000000"}\n`.length;

/**
 * Returns the generations of an index, the current one last. Undefined if Go would not accept every byte of it.
 * @param {Uint8Array<ArrayBuffer>} file
 * @returns {Generation[] | undefined}
 */
function parsed(file) {
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(file);
  } catch {
    return undefined;
  }
  const sum = [1, 2, 3].map((format) => pattern(format).exec(text)?.[1]).find(Boolean);
  return sum === crc32(file.subarray(0, -checked)) ? JSON.parse(text).generations : undefined;
}

/** @param {Uint8Array} bytes */
function crc32(bytes) {
  let crc = -1;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 && 0xedb88320);
  }
  return hex(~crc >>> 0, 8);
}
