// The differences in the entries that pages leave in localStorage: journal.js defines them.
//
// This module has no imports, so that Go's own tests can load it.

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
