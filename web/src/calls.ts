// Tells the page of synchronous file calls before they begin, because a worker that is in one cannot say anything. Such a call
// may never return: that was seen after the site's data was cleared.

/** Calls in one task are reported once, unless one of them moves so much that it may take longer. */
const much = 1 << 20;

interface Sync { [method: string]: (...args: unknown[]) => unknown }

/** Has tell called with the number of bytes before a file call, and with -1 when the task has ended that made it. */
export function watchCalls(tell: (bytes: number) => void): void {
  const handle = (globalThis as { FileSystemSyncAccessHandle?: { prototype: Sync } }).FileSystemSyncAccessHandle?.prototype;
  if (!handle) return;
  let inside = -1;
  let written = 0; // and not flushed
  const left = (): void => tell(inside = -1);
  const enter = (bytes: number): void => {
    if (inside >= 0 && bytes - inside < much) return;
    if (inside < 0) queueMicrotask(left);
    tell(inside = bytes);
  };
  for (const method of ["read", "write", "truncate", "getSize", "flush", "close"]) {
    const told = (call: Sync[string]) => function (this: Sync, ...args: unknown[]): unknown {
      if (method === "write") written += (args[0] as ArrayBuffer).byteLength;
      enter(method === "read" ? (args[0] as ArrayBuffer).byteLength : written);
      if (method === "flush" || method === "close") written = 0;
      return call.apply(this, args);
    };
    let current = told(handle[method]!);
    // A later replacement of the method is reported too.
    Object.defineProperty(handle, method, { configurable: true, get: () => current, set: (call: Sync[string]) => void (current = told(call)) });
  }
}
