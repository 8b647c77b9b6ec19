// The page's watchdog over the worker in which Go runs.
//
// A worker that dies reports its end. A stuck worker fell silent in a synchronous file call, which it had announced.
// Any other silence counts as work: the page gives up the worker only if it owes an answer and does not answer a ping for
// a minute.

import { diskMs, Patience } from "../../opfs/patience.js";
import type { FromWorker, ToWorker } from "./protocol";

/** How long a worker that owes an answer may be silent before it must send a sign of life, and the maximum time for that. */
const silenceMs = 5000, signMs = 60_000;

/** Calls gone when the worker no longer answers. The returned function must be called when the worker may owe an answer. */
export function watch(worker: Worker, owes: () => boolean, gone: (why: string) => void, ended: AbortSignal): () => void {
  let waits = false, asked = false;
  const inCall = new Patience(() => gone("a file call of its worker does not return"));
  const silent: Patience = new Patience(() => {
    if (asked) return gone(`its worker has been silent for ${signMs / 1000} s`);
    asked = true;
    worker.postMessage({ kind: "ping" } satisfies ToWorker);
    silent.wait(signMs);
  }, silenceMs / 5);
  ended.addEventListener("abort", () => {
    inCall.stop();
    silent.stop();
  });
  const patient = (): void => { // further calls give it no more time
    if (!waits && owes()) silent.wait(silenceMs), waits = true;
  };
  worker.addEventListener("message", ({ data }: MessageEvent<FromWorker>) => {
    if (ended.aborted) return;
    asked = waits = false;
    silent.wait(Infinity);
    if (data.kind === "ended") gone("its worker has ended");
    else inCall.wait(data.kind === "file call" ? diskMs(data.bytes) : Infinity);
    patient();
  });
  return patient;
}
