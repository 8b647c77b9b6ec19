// Text that a page could not send to its worker before it ended. Only localStorage can be written synchronously. It has
// room for a few megabytes, so an entry contains only the difference to a stored snapshot. The next page copies the
// difference into the file of the draft: see opfs/journal.js, which defines an entry.

import type { Difference, Rescue } from "../../opfs/journal.js";
import type { Content } from "./snapshot";

/** A stored snapshot: the one of that number in the draft's file, or the content of a generation. */
export interface Basis { number?: number; base?: string; text: Content | undefined }

/** Up to this length a text is kept whole, so that it can be read even if the stored snapshot is gone. */
const whole = 16_384;

/** Number of unreadable entries of a document that are kept. */
const mostUnreadable = 8;

/**
 * No engine gives a site more space than this, in UTF-16 units. A futile attempt would cost a page that ends tens of
 * milliseconds.
 */
const most = 5_242_880;

/** Space that is reserved for an entry, in case the page fills the storage. */
const reserveKey = "holdfast:reserve", reserve = /* @__PURE__ */ " ".repeat(32_768); // pure: the preview does not need it

/**
 * The keys of the entries of a document begin with this. A page that is not ready does not know yet whether the folder of its drafts is in
 * IndexedDB.
 */
export const prefixOf = (folder: string): string => `holdfast:draft:${folder.replace("indexeddb://", "")}:`;

/** Keeps an entry; returns whether that was possible. */
export function keep(folder: string, rescue: Rescue): boolean {
  if (rescue.differences.reduce((sum, { insert }) => sum + insert.length, 0) > most) return false;
  const key = prefixOf(folder) + rescue.draft, value = JSON.stringify(rescue);
  try {
    try {
      localStorage.setItem(key, value);
    } catch {
      localStorage.removeItem(reserveKey);
      localStorage.setItem(key, value);
    }
    return true;
  } catch {
    return false; // there is no space, or no such storage
  }
}

/** Forgets the entry of a draft up to a number, and reserves space again. */
export function drop(folder: string, draft: string, number: number): void {
  try {
    const key = prefixOf(folder) + draft;
    if (parsed(localStorage.getItem(key))?.number! <= number) localStorage.removeItem(key);
    hold();
  } catch {
    // There is no such storage.
  }
}

/** Reserves space for an entry, if there is any. */
export function hold(): void {
  try {
    localStorage[reserveKey] ??= reserve;
  } catch {
    // The storage is full, or there is none.
  }
}

/** The entries of a document. */
export function entries(folder: string): Rescue[] {
  try {
    const keys = Object.keys(localStorage).filter((key) => key.startsWith(prefixOf(folder)));
    return keys.flatMap((key) => parsed(localStorage.getItem(key)) ?? []);
  } catch {
    return [];
  }
}

/**
 * Removes the oldest entries whose snapshot is gone: no version can read them. An entry of a newer version may have more fields.
 * Such an entry stays.
 */
export function bound(folder: string, unreadable: Rescue[]): void {
  const known = unreadable.filter((entry) => Object.keys(entry).length === 7).sort((a, b) => b.at - a.at);
  for (const { draft, number } of known.slice(mostUnreadable)) drop(folder, draft, number);
}

function parsed(value: string | null): Rescue | undefined {
  try {
    const entry = JSON.parse(value ?? "") as Rescue;
    return entry.draft && entry.number && Array.isArray(entry.differences) ? entry : undefined;
  } catch {
    return undefined; // another program wrote it
  }
}

/** Returns the differences of a text to each snapshot that may be the newest in the file. */
export function differences(text: Content, bases: Basis[]): Difference[] {
  const all = text.length > whole ? bases.flatMap((basis) => difference(text, basis) ?? []) : [];
  return all.length === bases.length && all.length > 0 ? all : [{ length: 0, prefix: 0, suffix: 0, insert: spelled(text) }];
}

function difference(text: Content, { text: before, ...basis }: Basis): Difference | undefined {
  if (before === undefined || typeof before !== typeof text) return undefined;
  const limit = Math.min(text.length, before.length);
  const prefix = longest(limit, (from, to) => same(text, from, before, from, to - from));
  const suffix = longest(limit - prefix, (from, to) => same(text, text.length - to, before, before.length - to, to - from));
  return { ...basis, length: before.length, prefix, suffix, insert: spelled(text.slice(prefix, text.length - suffix) as Content) };
}

/** The length up to which two texts are equal. Engines compare long pieces much faster than single characters. */
function longest(limit: number, alike: (from: number, to: number) => boolean): number {
  if (alike(0, limit)) return limit;
  let low = 0, high = limit; // equal up to low, not up to high
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (alike(low, middle)) low = middle;
    else high = middle;
  }
  return low;
}

function same(a: Content, from: number, b: Content, at: number, n: number): boolean {
  if (typeof a === "string" || typeof b === "string") return a.slice(from, from + n) === b.slice(at, at + n);
  for (let i = 0; i < n; i++) if (a[from + i] !== b[at + i]) return false;
  return true;
}

/** Bytes as the characters of the same numbers. */
function spelled(text: Content): string {
  if (typeof text === "string") return text;
  let characters = "";
  for (let at = 0; at < text.length; at += 8192) characters += String.fromCharCode(...text.subarray(at, at + 8192));
  return characters;
}
