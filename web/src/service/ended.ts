// The lock of a term. The page of the serving tab holds it as long as the term accepts calls, so a tab that gets it knows that the
// term is over, however it ended. The lock of the lease says less: it can be taken from a tab that still lives.

/** How much later than the lock the last message of the term may arrive. It came before the lock in each of 265 kills. */
const arrivalMs = 25;

/**
 * Holds the lock until the signal aborts. Returns whether it is held; it is not where there are no Web Locks. Calls `lost` if another
 * page takes it.
 */
export function hold(name: string, ended: AbortSignal, lost: () => void): Promise<boolean> {
  return new Promise((held) => {
    let granted = false;
    const over = new Promise<void>((done) => ended.addEventListener("abort", () => done()));
    void (async () => navigator.locks.request(name, () => {
      held(granted = true);
      return ended.aborted || over;
    }))().catch(() => {
      if (granted) lost();
      else held(false);
    });
  });
}

/** Calls `over` when the term of that lock has ended and its messages have arrived, unless the signal aborts before. */
export function whenOver(name: string, over: () => void, signal: AbortSignal): void {
  const granted = (): void => {
    const timer = setTimeout(over, arrivalMs);
    signal.addEventListener("abort", () => clearTimeout(timer));
  };
  void (async () => navigator.locks.request(name, { mode: "shared", signal }, granted))().catch(() => undefined);
}
