// Reports synchronous file calls to the page before they begin, because a worker cannot send messages during a call.
// Such a call may never return: this happened after the site's data was cleared.

/** Calls in one task are reported once, unless one of them moves so much that it may take longer. */
const much = 1 << 20;

/** Microtasks in which an answer of Go reaches the page: then no further message needs to say that the call has returned. */
export const answerTurns = 12;

interface Sync { [method: string]: (...args: unknown[]) => unknown }

/**
 * Calls begins with the number of bytes before a file call, and ended after the task that made it, unless the worker
 * has sent another message since. The returned function must be called for each message. A message costs more than a
 * small file call.
 */
export function watchCalls(begins: (bytes: number) => void, ended: () => void): () => void {
  const handle = (globalThis as { FileSystemSyncAccessHandle?: { prototype: Sync } }).FileSystemSyncAccessHandle?.prototype;
  let inside = -1;
  const returned = (): void => void (inside = -1);
  if (!handle) return returned;
  let written = 0; // and not flushed
  const leave = (turns: number): void => {
    if (inside < 0) return;
    if (turns) queueMicrotask(() => leave(turns - 1));
    else ended();
  };
  const enter = (bytes: number): void => {
    if (inside >= 0 && bytes - inside < much) return;
    if (inside < 0) queueMicrotask(() => leave(answerTurns));
    begins(inside = bytes);
  };
  for (const method of ["read", "write", "truncate", "getSize", "flush", "close"]) {
    const told = (call: Sync[string]) => function (this: Sync, ...args: unknown[]): unknown {
      if (method === "write") written += (args[0] as ArrayBuffer).byteLength;
      enter(method === "read" ? (args[0] as ArrayBuffer).byteLength : written);
      if (method === "flush" || method === "close") written = 0;
      return call.apply(this, args);
    };
    let current = told(handle[method]!);
    // Calls of a later replacement of the method are reported too.
    Object.defineProperty(handle, method, { configurable: true, get: () => current, set: (call: Sync[string]) => void (current = told(call)) });
  }
  return returned;
}
