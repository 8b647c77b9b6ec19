// The module that saves, which loads when a page needs it.

import type * as Contract from "../holdfast";
import { AutoSave } from "./autosave";
import type { Handle } from "./handle";
import type { Taking } from "./snapshot";
import { check, type Saver, type Wire } from "./wire";

/** How long AutoSave waits for the preview once the runtime runs. The preview takes longer only if a download or the storage is stuck. */
const previewMs = 1000;

/**
 * Starts to save the page's text. The page has `handle`, which dispatches the events. The arguments are separate
 * instead of a Wire, because property names would enlarge the facade. `running` settles when there is a runtime; nobody
 * waits for this any more when `given` aborts.
 */
export async function startAutoSave(handle: Handle, running: Promise<unknown>, given: AbortSignal, holdfast: Contract.Holdfast, snapshot: Taking, options: Contract.AutoSaveOptions = {},
  savers: Wire["savers"], call: Wire["call"], journal: Wire["journal"], inTime: Wire["inTime"], deadline: Wire["deadline"], tell: Wire["tell"], error: Wire["error"], previewed: Promise<void>): Promise<Saver> {
  const wire: Wire = { handle, holdfast, savers, call, journal, inTime, deadline, tell, error };
  check(wire, snapshot, options);
  const enough = new Promise((done) => given.addEventListener("abort", done));
  const runs = async (): Promise<void> => {
    await running;
    await Promise.race([previewed, new Promise((done) => setTimeout(done, previewMs))]);
  };
  if (!given.aborted) await Promise.race([runs(), enough]);
  if (given.aborted) throw wire.error({ code: "aborted", operation: "acquire", retryable: false, message: "aborted: this AutoSave was ended before it was ready" });
  const autosave = new AutoSave(wire, snapshot, { ...options, signal: given }, handle.begun());
  await autosave.ready;
  return autosave;
}
