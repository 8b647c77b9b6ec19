// The module that saves, which loads when a page needs it.

import type * as Contract from "../holdfast";
import { AutoSave } from "./autosave";
import type { Early } from "./early";
import type { Handle } from "./handle";
import { Journal } from "./journal";
import { PageSnapshots } from "./page-snapshots";
import type { Taking } from "./snapshot";
import { check, refusal, type Saver, type Wire } from "./wire";

/** How long AutoSave waits for the preview once the runtime runs. The preview takes longer only if a download or the storage is stuck. */
const previewMs = 1000;

/**
 * Starts to save the page's text. The page has `handle`, which dispatches the events. The arguments are separate
 * instead of a Wire, because property names would enlarge the facade. `running` settles when there is a runtime; nobody
 * waits for this any more when `given` aborts.
 */
export async function startAutoSave(handle: Handle, running: Promise<unknown>, given: AbortSignal, holdfast: Contract.Holdfast, snapshot: Taking, options: Contract.AutoSaveOptions = {},
  savers: Wire["savers"], call: Wire["call"], journal: Wire["journal"], inTime: Wire["inTime"], deadline: Wire["deadline"], tell: Wire["tell"], error: Wire["error"], previewed: Promise<Early | undefined>): Promise<Saver> {
  let wire: Wire = { handle, holdfast, savers, call, journal, inTime, deadline, tell, error };
  check(wire, snapshot, options);
  keepTyped(handle, snapshot, given, holdfast.ownerId, journal);
  const enough = new Promise<void>((done) => given.addEventListener("abort", () => done()));
  const runs = running.then(() => Promise.race([previewed, new Promise<undefined>((done) => setTimeout(done, previewMs))]));
  const early = await Promise.race([previewed.then((found) => found ?? runs), runs, given.aborted ? undefined : enough]);
  if (early && !given.aborted && !handle.typed) wire = early.wire(wire);
  else {
    const unused = previewed.then((one) => one?.end());
    if (early) await Promise.race([unused.then(() => running), enough]);
  }
  if (given.aborted) throw refusal(wire, "aborted", "it ended before it was ready");
  const autosave = new AutoSave(wire, snapshot, { ...options, signal: given }, handle.begun());
  await autosave.ready;
  handle.folder = "";
  return autosave;
}

/** Keeps text that is typed before the AutoSave is ready, if its page ends by then, or its AutoSave. Its runtime may begin several times. */
function keepTyped(handle: Handle, take: Taking, given: AbortSignal, ownerId: string, post: Wire["journal"]): void {
  if (handle.kept) return;
  const snapshots = new PageSnapshots(take), kept = handle.kept = new Journal(snapshots, 0, ownerId, 0, post);
  const keep = (): void => {
    kept.folder = handle.folder ?? "";
    if (handle.typed) kept.keep(snapshots.take());
  };
  given.addEventListener("abort", keep);
  addEventListener("pagehide", keep, { signal: given });
  // A page that returns from the back/forward cache still has the text.
  addEventListener("pageshow", () => kept.saved(snapshots.draft, Infinity), { signal: given });
}
