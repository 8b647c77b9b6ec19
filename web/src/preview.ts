// Shows the page what was saved last, while the Go program is loading.

import { drafted, type Left } from "../../opfs/leftbehind.js";
import { folderOf, saved } from "../../opfs/saved.js";
import type * as Contract from "../holdfast";
import type { Early, Look, Take } from "./early";
import type { Handle } from "./handle";
import { namesOf, type When } from "./lend";
import type { Opening } from "./options";
import { prefixOf } from "./rescue";
import { after } from "./snapshot";

type Rights = typeof import("./early");

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** How long the files may take while the page holds the lock. */
const readMs = 1000;

/**
 * The interval at which this module checks whether Go runs or a late module has arrived, in milliseconds, and the longest pause between
 * two attempts to edit, in such intervals.
 */
const tickMs = 50, mostTicks = 20;

/**
 * Reads what was saved last in this browser and gives it to the page. If the page may edit, it holds the lock from now on:
 * nobody else edits, no draft waits, and Go would load the same content. It releases the lock if `ready` rejects.
 * It takes the lock only once both `modules` have arrived: the one that takes it, and the one that saves. They may come much later than the
 * preview. The previous page may still be ending, so this tries again while Go is loading.
 */
export async function preview(handle: Handle, ready: Promise<void>, { root, server, ownerName }: Opening, options: Contract.AutoSaveOptions, modules: [rights: Promise<Rights | undefined> | false, saves: Promise<unknown>], ...when: When): Promise<Early | null | undefined> {
  const [loads, ended] = when;
  const { path = [] } = options;
  const folder = folderOf(root, server, path);
  handle.folder ??= folder; // the text of an AutoSave that has ended meanwhile is kept there
  if (ended.aborted || !(loads() || handle.hears("autosave:preview"))) return undefined;
  let over = false, known = false; // known: the content was read, and the page has learned of it
  ready.catch(() => { over = true; });
  const done = (): unknown => over || !loads() || ended.aborted || handle.typed;

  let rights: Rights | null | undefined; // undefined while a module is late, null if there is none
  // Usually they arrive together: then the content is read once.
  await Promise.race([after(tickMs), Promise.all(modules).then(([module]) => { rights = module || null; }, () => undefined)]);

  const take: Take = async () => rights && rights.mayEdit(root, options, ...when);

  const look: Look = (loan, own = "") => {
    const inTime = <T>(result: Promise<T>): Promise<T | undefined> => Promise.race([result.catch(() => undefined), ...(loan ? [after(readMs)] : [])]);
    const found = inTime(read(folder)), left = loan ? inTime(leftBehind(folder, own)) : undefined;
    return [found, found.then(async (saved) => (await left)?.some(({ draft, number }) => draft !== saved?.draft || !(number! <= saved?.number!)))]; // Go's reconciler asks the same
  };

  /** Tries once. Null means that the page does not edit before Go runs, and undefined that it may be able to later. */
  const attempt = async (): Promise<Early | null | undefined> => {
    const loan = await take();
    if (known && !loan) return loan;
    const [reads, waits] = look(loan);
    const [found, held] = await Promise.all([reads, loan ? false : server ? undefined : isHeld(root, path)]);
    if (!known && found && handle.hears("autosave:preview")) handle.preview({ base: found.base, text: decoder.decode(found.content) }, Object.freeze({ content: found.content.slice(), ...(held !== undefined && { held }) }));
    known ||= found !== undefined;
    if (!loan) return loan;
    const unsaved = await waits;
    if (found !== undefined && unsaved === false) return rights!.early(loan, folder, found, ownerName, ready, take, look, ended);
    await loan.release();
    return unsaved ? null : undefined;
  };

  for (let ticks = 1; ; ticks = rights ? Math.min(2 * ticks, mostTicks) : 1) {
    const early = await attempt();
    if (early !== undefined || done()) return early;
    for (let left = ticks; left-- > 0 || (known && await isHeld(root, path));) {
      await after(tickMs);
      if (done()) return undefined;
    }
  }
}

/** The generation that Go would load: null if there is none, undefined if that is not sure. */
async function read(folder: string): ReturnType<typeof saved> {
  const [found, databases] = await Promise.all([saved(folder), indexedDB?.databases()]);
  // A document may have moved to the database while the browser refused files.
  return databases?.some(({ name }) => name === "holdfast") ? undefined : found;
}

/** The texts that other pages have left behind: in localStorage, see rescue.ts, or as drafts. */
async function leftBehind(folder: string, own: string): Promise<Left[]> {
  const prefix = prefixOf(folder);
  const kept = Object.keys(localStorage).flatMap((key) => (key.startsWith(prefix) && key !== prefix + own ? { ...JSON.parse(localStorage[key]) } : []));
  return [...kept, ...await drafted(folder, own)]; // in this order: a text moves from localStorage into its draft
}

/** Whether a lock keeps this page from editing the document now. Undefined if the browser does not know. */
async function isHeld(root: string, path: readonly string[]): Promise<boolean | undefined> {
  const { held } = await navigator.locks?.query().catch((): LockManagerSnapshot => ({})) ?? {};
  const names = namesOf(root, path);
  return held?.some(({ name, mode }) => name === names.at(-1) || (mode === "exclusive" && names.includes(name!)));
}

