// What a page could not save as it was closed. Saving takes several steps in another thread, and a page
// that is closed or put into the back/forward cache has time for none of them. localStorage is the one
// storage that can be written at once. The next page that edits takes it from there and saves it.

import type { Snapshot } from "../holdfast";

export interface Rescued { token: number; bytes: Uint8Array }

/** Keeps the snapshot; returns whether that was possible. It is not for one that is still awaited, or too large. */
export function keep(key: string, token: number, snapshot: Snapshot | Promise<Snapshot>): boolean {
  try {
    const text = snapshot instanceof Uint8Array ? `b${binary(snapshot)}`
      : typeof snapshot === "string" ? `t${snapshot}`
      : "then" in snapshot ? undefined : `t${JSON.stringify(snapshot)}`;
    if (text === undefined) return false;
    localStorage.setItem(key, `${token} ${text}`);
    return true;
  } catch {
    return false; // there is no room, or no such storage here
  }
}

export function find(key: string): Rescued | undefined {
  const [, token, kind, text] = /^(\d+) ([bt])([^]*)$/.exec(read(key)) ?? [];
  if (token === undefined || text === undefined) return undefined;
  const bytes = kind === "t" ? new TextEncoder().encode(text) : Uint8Array.from(text, (c) => c.charCodeAt(0));
  return { token: Number(token), bytes };
}

/** Forgets what was kept under this token. */
export function drop(key: string, token: number): void {
  if (read(key).startsWith(`${token} `)) localStorage.removeItem(key);
}

function read(key: string): string {
  try {
    return localStorage.getItem(key) ?? "";
  } catch {
    return "";
  }
}

/** Bytes as the characters of the same numbers. */
function binary(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return text;
}
