// The module that saves, which loads when a page needs it.

import type * as Contract from "../holdfast";
import { AutoSave } from "./autosave";
import type { Early } from "./early";
import type { Handle } from "./handle";
import { Journal } from "./journal";
import { previewMs } from "./limits";
import { PageSnapshots } from "./page-snapshots";
import { drop } from "./rescue";
import { after, content, type Taken, type Taking } from "./snapshot";
import { check, refusal, type Saver, type Wire } from "./wire";

/**
 * Starts to save the page's text. The page has `handle`, which dispatches the events. The arguments are separate
 * instead of a Wire, because property names would enlarge the facade. `running` settles when there is a runtime; nobody
 * waits for this AutoSave any more when `given` aborts; `over` also aborts when the runtime of this attempt ends.
 */
export async function startAutoSave(handle: Handle, running: Promise<unknown>, given: AbortSignal, holdfast: Contract.Holdfast, snapshot: Taking, options: Contract.AutoSaveOptions = {},
  savers: Wire["savers"], call: Wire["call"], journal: Wire["journal"], inTime: Wire["inTime"], deadline: Wire["deadline"], tell: Wire["tell"], error: Wire["error"], previewed: Promise<Early | null | undefined>, over: AbortSignal): Promise<Saver> {
  let wire: Wire = { handle, holdfast, savers, call, journal, inTime, deadline, tell, error };
  check(wire, snapshot, options);
  keepTyped(handle, given, holdfast.ownerId, journal, previewed);
  const enough = new Promise((done) => (over.aborted ? done(0) : over.addEventListener("abort", done)));
  const runs = running.then(() => Promise.race([previewed, after(previewMs)]));
  const early = await Promise.race([previewed.then((found) => found ?? runs), runs, enough as Promise<undefined>]);
  if (early && !over.aborted && !handle.typed) wire = early.wire(wire);
  else {
    const unused = previewed.then((one) => one?.end());
    if (early) await Promise.race([unused.then(() => running), enough]);
  }
  if (over.aborted) throw refusal(wire, "aborted", "given up");
  const autosave = new AutoSave(wire, snapshot, { ...options, signal: over }, handle.begun());
  await autosave.ready;
  handle.folder = "";
  if (given.aborted) await autosave.leave(deadline()); // Go began as the page gave up
  return autosave;
}

/**
 * Keeps text that is typed before the AutoSave is ready, if its page ends by then, or its AutoSave, which may end before its folder is
 * known. Its runtime may begin several times.
 */
function keepTyped(handle: Handle, given: AbortSignal, ownerId: string, post: Wire["journal"], previewed: Promise<unknown>): void {
  if (handle.kept) return;
  const { take } = handle;
  handle.take = () => {
    const text = take(), copy = handle.folder === "" ? text : content(text);
    if (copy instanceof Promise) copy.catch(() => undefined); // a call that needs the text reports it
    return copy;
  };
  const snapshots = new PageSnapshots(() => (handle.typed as Taken).text), kept = handle.kept = new Journal(snapshots, 0, ownerId, 0, post);
  const keep = (): void => {
    if (!handle.folder || !handle.typed) return;
    kept.folder = handle.folder;
    const shown = handle.begun(); // no preview replaces what is typed
    if (shown) {
      snapshots.base = shown.base;
      snapshots.baseText = shown.text;
    }
    kept.keep(snapshots.take());
  };
  given.addEventListener("abort", keep);
  void previewed.then(() => given.aborted && keep());
  addEventListener("pagehide", keep, { signal: given });
  // A page that returns from the back/forward cache still has the text.
  addEventListener("pageshow", () => drop(handle.folder!, snapshots.draft, Infinity), { signal: given });
}
