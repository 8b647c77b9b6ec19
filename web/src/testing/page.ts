// Faults in a real page. A test that drives a browser runs this script before the scripts of the page.

import type { PageFaults } from "../../testing-page";

/** The faults of a page or worker. */
interface State {
  /** The number of the next writes that fail. */
  failing: number;
  /** How long it takes to open a file, in milliseconds. */
  delayMs: number;
  /** The number of bytes that may still be written. */
  room: number;
  /** No request reaches a server. */
  cut: boolean;
  /** How far the clocks are ahead, in milliseconds. */
  ahead: number;
}

(() => {
  /** Replaces the functions that can fail, and returns how to change the faults. Workers run the text of this function, so it uses nothing from outside. */
  const install = (): ((change: Partial<State>) => void) => {
    const state: State = { failing: 0, delayMs: 0, room: Infinity, cut: false, ahead: 0 };
    const fail = (name: string, why: string): never => { throw new DOMException(why, name); };
    const write = (more: number): void => {
      if (state.failing > 0) {
        state.failing--;
        fail("UnknownError", "the test lets this write fail");
      }
      if (more > state.room) fail("QuotaExceededError", "the test lets the storage be full");
      state.room -= Math.max(0, more);
    };
    /** Lets `before` see the arguments of a method, and throw instead of it. */
    const guard = (type: any, method: string, before: (self: any, args: any[]) => void): void => {
      const original = type?.prototype[method];
      if (original) type.prototype[method] = function (...args: unknown[]) { before(this, args); return original.apply(this, args); };
    };
    const sizeOf = (value: unknown): number => {
      if (typeof value === "string") return 2 * value.length;
      if (value instanceof ArrayBuffer || ArrayBuffer.isView(value)) return value.byteLength;
      if (value instanceof Blob) return value.size;
      return value && typeof value === "object" ? Object.values(value).reduce((sum: number, part) => sum + sizeOf(part), 0) : 8;
    };

    const { FileSystemSyncAccessHandle, IDBObjectStore } = self as any;
    guard(FileSystemSyncAccessHandle, "write", (file, [part, { at = 0 } = {} as { at?: number }]) => write(at + part.byteLength - file.getSize()));
    guard(FileSystemSyncAccessHandle, "truncate", (file, [size]) => write(size - file.getSize()));
    guard(IDBObjectStore, "put", (_, [value]) => write(sizeOf(value)));
    guard(IDBObjectStore, "add", (_, [value]) => write(sizeOf(value)));
    const file: any = self.FileSystemFileHandle?.prototype;
    const open = file?.createSyncAccessHandle;
    if (open) file.createSyncAccessHandle = async function (...args: unknown[]) {
      if (state.delayMs) await new Promise((done) => setTimeout(done, state.delayMs));
      return open.apply(this, args);
    };

    const { fetch, Date, WebSocket } = self;
    let line = new AbortController();
    const sockets = new Set<WebSocket>();
    self.fetch = async (input, init) => {
      const address = String(input instanceof Request ? input.url : input);
      if (/^(blob|data):/.test(address)) return fetch(input, init);
      const { signal } = line;
      const given = init?.signal ?? (input instanceof Request ? input.signal : undefined);
      return fetch(input, { ...init, signal: given ? AbortSignal.any([given, signal]) : signal }).catch((error) => {
        throw signal.aborted ? new TypeError("Failed to fetch: the test has cut the server") : error;
      });
    };
    self.WebSocket = new Proxy(WebSocket, {
      construct(Real, [url, ...rest]: [string, ...string[]]) {
        const socket = new Real(state.cut ? "wss://cut.invalid" : url, ...rest);
        sockets.add(socket);
        socket.addEventListener("close", () => sockets.delete(socket));
        return socket;
      },
    });
    const clock = performance.now.bind(performance);
    performance.now = () => clock() + state.ahead;
    const read = (): number => Date.now() + state.ahead;
    self.Date = new Proxy(Date, {
      construct: (Real, args: [], caller) => Reflect.construct(Real, args.length ? args : [read()], caller),
      apply: (Real) => new Real(read()).toString(),
      get: (Real, key) => key === "now" ? read : Reflect.get(Real, key),
    });

    return (change) => {
      if (change.cut === false) line = new AbortController();
      Object.assign(state, change);
      if (!change.cut) return;
      line.abort();
      for (const socket of sockets) socket.close();
    };
  };

  /** A worker runs this before its own script. The page's first message brings the faults and a port for later ones. */
  const bootstrap = (begin: typeof install, key: string): void => {
    const apply = begin();
    addEventListener("message", (event) => {
      if (!event.data?.[key]) return;
      event.stopImmediatePropagation();
      apply(event.data[key]);
      event.ports[0]!.onmessage = ({ data, target }) => {
        apply(data);
        (target as MessagePort).postMessage(null);
      };
    });
  };

  const key = "holdfast-faults";
  const apply = install();
  /** The faults so far, for workers that start later. */
  const asked: Partial<State> = {};
  const limitMs = 10_000;
  const workers = new Map<Worker, MessagePort>();
  const releases = new Map<string, () => void>();

  /** Settles when the worker has applied the change. */
  const tell = (port: MessagePort, change: Partial<State>): Promise<void> => new Promise((done, failed) => {
    const limit = setTimeout(() => failed(new Error(`holdfastFaults: a worker did not answer within ${limitMs / 1000} s; has it died?`)), limitMs);
    port.onmessage = () => { clearTimeout(limit); done(); };
    port.postMessage(change);
  });
  let last: Promise<unknown> = Promise.resolve();
  const change = (part: Partial<State>): Promise<void> => {
    apply(part);
    Object.assign(asked, workers.size ? { ...part, failing: 0 } : part);
    const told = last.then(() => Promise.all([...workers.values()].map((port) => tell(port, part))));
    last = told.catch(() => undefined);
    return told.then(() => undefined);
  };

  const { Worker } = self;
  self.Worker = new Proxy(Worker, {
    construct(Real, [url, options]: [string | URL, WorkerOptions?], caller) {
      const script = new URL(url, document.baseURI).href;
      if (!(self.holdfastFaultyWorkers ?? /holdfast/).test(script)) return Reflect.construct(Real, [url, options], caller);
      const first = `(${bootstrap})(${install}, ${JSON.stringify(key)});`;
      const own = (text: string): string => URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
      const text = options?.type === "module" ? `import ${JSON.stringify(own(first))}; import ${JSON.stringify(script)};` : `${first} importScripts(${JSON.stringify(script)});`;
      const worker: Worker = Reflect.construct(Real, [own(text), options], caller);
      const { port1, port2 } = new MessageChannel();
      worker.postMessage({ [key]: asked }, [port2]);
      asked.failing = 0; // this worker has them now
      workers.set(worker, port1);
      worker.terminate = () => { workers.delete(worker); Real.prototype.terminate.call(worker); };
      return worker;
    },
  });

  const files = (part: Partial<State>): Promise<void> => {
    if (!workers.size) return Promise.reject(new Error("holdfastFaults: no worker of Holdfast has started in this page; if the bundler renames it, set holdfastFaultyWorkers"));
    return change(part);
  };
  const faults: PageFaults = {
    steal: (root = "project") => new Promise((done, failed) => {
      faults.release(root);
      navigator.locks.request(`holdfast:${root}`, { steal: true }, () => new Promise<void>((release) => {
        releases.set(root, release);
        done();
      })).catch(failed);
    }),
    release: (root = "project") => {
      releases.get(root)?.();
      releases.delete(root);
    },
    expire: (ms = 120_000) => change({ ahead: (asked.ahead ?? 0) + ms }),
    failWrites: (count) => files({ failing: count }),
    delayFiles: (ms) => files({ delayMs: ms }),
    fillStorage: (room = 0) => files({ room }),
    cutServer: (cut = true) => change({ cut }),
  };
  self.holdfastFaults = faults;
})();
