// Shows the page what was saved last, while the Go program is loading. If nobody edits the document, the page edits: see early.ts.

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

/** The maximum time for reading the files while the page has the lock, in milliseconds: others may wait for the lock. */
const readMs = 1000;

/**
 * The interval at which this module checks whether Go runs or a late module has arrived, in milliseconds. The longest pause between two
 * attempts to edit, in such intervals.
 */
const tickMs = 50, longestPauseTicks = 20;

/**
 * Reads what was saved last in this browser and gives it to the page, as `autosave:preview`. Then it tries to get the right to edit before
 * Go runs. Returns that right, or nothing if the page edits only when Go runs.
 *
 * The page may edit if nobody else edits, no draft waits, and Go would load the content that was read. The page has the document's lock
 * from then on, and releases it if `ready` rejects. The lock is taken only after both `modules` have arrived: the one that takes it, and the
 * one that saves. They may come much later than the preview. The previous page may still be ending, so this tries again while Go is
 * loading.
 */
export async function preview(handle: Handle, ready: Promise<void>, { root, server, ownerName }: Opening, options: Contract.AutoSaveOptions, modules: [rights: Promise<Rights | undefined> | false, saves: Promise<unknown>], ...when: When): Promise<Early | null | undefined> {
  const [loads, ended] = when;
  const { path = [] } = options;
  const folder = folderOf(root, server, path);
  handle.folder ??= folder; // the text of an AutoSave that has ended meanwhile is kept there
  if (ended.aborted || !(loads() || handle.hears("autosave:preview"))) return undefined;
  let failed = false; // the AutoSave cannot begin
  let shown = false; // the content was read; a page that listens to autosave:preview received it
  ready.catch(() => { failed = true; });
  const done = (): unknown => failed || !loads() || ended.aborted || handle.typed;

  let rights: Rights | null | undefined; // the module early.ts: undefined while it or the other one is late, null if there is none
  // Usually both modules have arrived by now. Then the content is read once, under the lock.
  await Promise.race([after(tickMs), Promise.all(modules).then(([module]) => { rights = module || null; }, () => undefined)]);

  const take: Take = async () => rights && rights.mayEdit(root, options, ...when);

  const look: Look = (loan, own = "") => {
    // Without the lock, nobody waits for the page, and the files may take longer.
    const inTime = <T>(result: Promise<T>): Promise<T | undefined> => Promise.race([result.catch(() => undefined), ...(loan ? [after(readMs)] : [])]);
    const found = inTime(read(folder)), left = loan ? inTime(leftBehind(folder, own)) : undefined;
    // A text waits unless the saved content contains it. autosave/reconcile.go decides the same.
    return [found, found.then(async (saved) => (await left)?.some(({ draft, number }) => draft !== saved?.draft || !(number! <= saved?.number!)))];
  };

  /** Makes one attempt to edit, and shows the content. Null means that the page does not edit before Go runs. Undefined means: try again. */
  const attempt = async (): Promise<Early | null | undefined> => {
    const loan = await take();
    if (shown && !loan) return loan;
    const [reading, waiting] = look(loan);
    const [found, held] = await Promise.all([reading, loan ? false : server ? undefined : isHeld(root, path)]);
    if (!shown && found && handle.hears("autosave:preview")) handle.preview({ base: found.base, text: decoder.decode(found.content) }, Object.freeze({ content: found.content.slice(), ...(held !== undefined && { held }) }));
    shown ||= found !== undefined;
    if (!loan) return loan;
    const otherTextWaits = await waiting;
    if (found !== undefined && otherTextWaits === false) return rights!.early(loan, folder, found, ownerName, ready, take, look, ended);
    await loan.release();
    return otherTextWaits ? null : undefined;
  };

  // The pauses grow only once the modules are here. A page that shows the content makes no attempt while another one has the lock.
  for (let ticks = 1; ; ticks = rights ? Math.min(2 * ticks, longestPauseTicks) : 1) {
    const early = await attempt();
    if (early !== undefined || done()) return early;
    for (let left = ticks; left-- > 0 || (shown && await isHeld(root, path));) {
      await after(tickMs);
      if (done()) return undefined;
    }
  }
}

/** The generation that Go would load. Null if there is none, undefined if that is not certain. */
async function read(folder: string): ReturnType<typeof saved> {
  const [found, databases] = await Promise.all([saved(folder), indexedDB?.databases()]);
  // A document may have moved to the database while the browser refused files.
  return databases?.some(({ name }) => name === "holdfast") ? undefined : found;
}

/** The texts that other pages have left behind: in localStorage (see rescue.ts) or as drafts. `own` is the id of this page's own draft. */
async function leftBehind(folder: string, own: string): Promise<Left[]> {
  const prefix = prefixOf(folder);
  const rescued = Object.keys(localStorage).flatMap((key) => (key.startsWith(prefix) && key !== prefix + own ? { ...JSON.parse(localStorage[key]) } : []));
  return [...rescued, ...await drafted(folder, own)]; // in this order, because a text moves from localStorage into its draft
}

/** Whether a lock keeps this page from editing the document now. Undefined if the browser does not know. */
async function isHeld(root: string, path: readonly string[]): Promise<boolean | undefined> {
  const { held } = await navigator.locks?.query().catch((): LockManagerSnapshot => ({})) ?? {};
  const names = namesOf(root, path);
  return held?.some(({ name, mode }) => name === names.at(-1) || (mode === "exclusive" && names.includes(name!)));
}

