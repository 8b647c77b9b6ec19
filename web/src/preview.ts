// Shows the page what was saved last, while the Go program is loading.

import { folderOf, saved } from "../../opfs/saved.js";
import type * as Contract from "../holdfast";
import type { Handle } from "./handle";

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/**
 * Reads what was saved last in this browser and gives it to the page. Does nothing if nothing is saved, or if Go might
 * load another content.
 */
export async function preview(handle: Handle, root: string, server: string, { path = [] }: Contract.AutoSaveOptions): Promise<void> {
  const [found, held, databases] = await Promise.all([saved(folderOf(root, server, path)), server ? undefined : isHeld(root, path), indexedDB?.databases()]);
  // A document may have moved to the database while the browser refused files.
  if (!found || databases?.some(({ name }) => name === "holdfast")) return;
  const { base, content } = found;
  handle.preview({ base, text: decoder.decode(content) }, Object.freeze({ content, ...(held !== undefined && { held }) }));
}

/** Whether a lock keeps this page from editing the document now. Undefined if the browser does not know. */
async function isHeld(root: string, path: readonly string[]): Promise<boolean | undefined> {
  const { held } = await navigator.locks?.query().catch(() => ({ held: undefined })) ?? {};
  const names = [`holdfast:${root}`]; // of the document, and of all around it: those of Go's lock.Name
  path.forEach((component, at) => names.push(`${names[at]}${at ? "/" : "//"}${component.replace(/[%/\x00-\x1f\x7f]/g, encoded)}`));
  return held?.some(({ name, mode }) => name === names.at(-1) || (mode === "exclusive" && names.includes(name!)));
}

const encoded = (character: string): string => `%${character.charCodeAt(0).toString(16).padStart(2, "0").toUpperCase()}`;
