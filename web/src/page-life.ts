// Reports when a page is hidden, enters the back/forward cache, or ends.

/** The actions of an AutoSave then. `keep` must be done when it returns: nothing may run after it. */
interface Life { keep(): void; flush(): void; resume(): void; suspend(): void; sleep(): void; wake(): void }

export function watch(page: Life, signal: AbortSignal): void {
  const hide = (): void => {
    page.keep();
    page.flush();
  };
  document.addEventListener("visibilitychange", () => document.hidden && hide(), { signal });
  document.addEventListener("freeze", hide, { signal });
  document.addEventListener("resume", () => page.resume(), { signal });
  // Twice: Firefox ends the running script as it closes a tab, even in the middle of this one, and runs the next one.
  let kept = false;
  addEventListener("pagehide", () => {
    kept = false;
    page.keep();
    kept = true;
  }, { signal, capture: true });
  addEventListener("pagehide", ({ persisted }) => {
    if (!kept) page.keep();
    if (persisted) page.sleep();
    else page.suspend();
  }, { signal });
  addEventListener("pageshow", () => page.wake(), { signal });
}
