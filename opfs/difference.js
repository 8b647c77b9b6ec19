// The differences in the entries that pages leave in localStorage: journal.js defines them.
//
// This module imports only its neighbours, so that Go's own tests can load it.

import { unsealed } from "./savewriter.js";

const encoder = new TextEncoder();

/**
 * Applies a difference to a stored snapshot; undefined if it was made from another snapshot.
 * @param {Uint8Array} stored @param {import("./journal.js").Difference} difference @param {boolean} binary
 */
export function applied(stored, { length, prefix, suffix, insert }, binary) {
  const before = binary ? stored : new TextDecoder("utf-8", { ignoreBOM: true }).decode(stored);
  if (before.length !== length) return undefined;
  if (typeof before === "string") return encoder.encode(before.slice(0, prefix) + insert + before.slice(length - suffix));
  const bytes = new Uint8Array(prefix + insert.length + suffix);
  bytes.set(before.subarray(0, prefix));
  for (let i = 0; i < insert.length; i++) bytes[prefix + i] = insert.charCodeAt(i);
  bytes.set(before.subarray(length - suffix), prefix + insert.length);
  return bytes;
}

/**
 * The stored snapshot that a difference builds on; undefined if there is none.
 * @param {import("./journal.js").Drafts} dir @param {import("./journal.js").DraftFile} file
 * @param {Pick<import("./journal.js").Difference, "number" | "base">} difference
 */
export async function basis(dir, file, { number, base }) {
  if (number !== undefined) return file.content(number);
  if (base === undefined) return new Uint8Array();
  const generation = await dir.generation(base);
  return generation && unsealed(generation);
}

/**
 * Whether a draft is the content on which it was typed. Not if that is unknown.
 * @param {import("./journal.js").Drafts} dir @param {import("./journal.js").DraftFile} file
 */
export async function unchanged(dir, file) {
  const { header } = file;
  const before = await basis(dir, file, header?.base ? { base: header.base } : {}).catch(() => undefined);
  if (before?.length !== header?.bytes) return false;
  const text = file.content();
  return !!text && !!before && equal(before, text);
}

/** @param {Uint8Array} one @param {Uint8Array} other */
export const equal = (one, other) => one.length === other.length && one.every((byte, at) => byte === other[at]);
