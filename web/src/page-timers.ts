// setTimeout for a Go program in a page. The timers of a hidden page run once a second, and
// after five minutes once a minute, which is too seldom for a heartbeat. The timers of a
// worker do not slow down. So a helper worker also runs the timers while the page is hidden.
// A program that runs in a worker needs no helper.

interface Timer { run: () => void; due: number; native: number }

const pending = new Map<number, Timer>();
let lastId = 0;
const page: Document | undefined = globalThis.document;
let users = 0;
let helper: Worker | undefined;

/** Starts the helper. Call stopTimers as often as this. */
export function startTimers(start: () => Worker): void {
  if (users++ > 0 || !page) return;
  try {
    helper = start();
    helper.onmessage = ({ data: id }: MessageEvent<number>) => fire(id);
    helper.onerror = (event) => {
      event.preventDefault();
      slow(event.message);
    };
  } catch (error) {
    slow(error);
  }
  page.addEventListener("visibilitychange", delegate);
}

/** Leases are safe without the helper: a lease that is renewed too late ends. */
function slow(why: unknown): void {
  console.warn(`holdfast: heartbeats slow down while this page is hidden, since its helper worker cannot run (${why || "is it there, and does worker-src allow it?"})`);
}

export function stopTimers(): void {
  if (--users > 0) return;
  page?.removeEventListener("visibilitychange", delegate);
  helper?.terminate();
  helper = undefined;
}

const native = globalThis.setTimeout;
const clearNative = globalThis.clearTimeout;

export function setTimeout(run: () => void, ms: number): number {
  const id = ++lastId;
  pending.set(id, { run, due: performance.now() + ms, native: native(fire, ms, id) as unknown as number });
  if (page?.hidden) helper?.postMessage({ id, ms });
  return id;
}

export function clearTimeout(id: number): void {
  const timer = pending.get(id);
  if (timer === undefined) return;
  pending.delete(id);
  clearNative(timer.native);
}

/** Runs a timer, whichever of the two clocks fires first. */
function fire(id: number): void {
  const timer = pending.get(id);
  if (timer === undefined) return;
  clearTimeout(id);
  timer.run();
}

/** Hands the timers that were set while the page was visible to the helper. */
function delegate(): void {
  if (!page?.hidden) return;
  const now = performance.now();
  for (const [id, timer] of pending) helper?.postMessage({ id, ms: Math.max(0, timer.due - now) });
}
