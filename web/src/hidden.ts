// Reports to a worker whether the page is hidden. A hidden page may be frozen, and its workers with it, so it must not
// keep open a file that others want.

/** Calls tell now if the page is hidden, and at each change. */
export function watchHidden(tell: (hidden: boolean) => void, signal: AbortSignal): void {
  if (!globalThis.document) return; // a worker does not know
  const on = (target: EventTarget, type: string, hidden: () => boolean): void => target.addEventListener(type, () => tell(hidden()), { signal });
  const state = (): boolean => document.hidden;
  if (state()) tell(true);
  on(document, "visibilitychange", state);
  on(document, "resume", state);
  on(document, "freeze", () => true);
  on(globalThis, "pagehide", () => true);
  on(globalThis, "pageshow", state);
}
