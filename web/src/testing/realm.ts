// The globals of one page or worker of a test. The modules of the package run with these instead of the process's own.

import { webcrypto } from "node:crypto";
import { TextDecoder as Decoder, TextEncoder as Encoder } from "node:util";
import { Channels, copied, Receiver } from "./channels";
import { Clock, type Owner } from "./clock";
import { Files } from "./files";
import { Locks } from "./locks";

/** All that the tabs of one browser share. */
export class World {
  readonly clock: Clock;
  readonly locks: Locks;
  readonly files: Files;
  readonly channels: Channels;
  readonly storage = new LocalStorage();
  online = true;
  /** The compiled program, which all tabs share. */
  readonly module: () => Promise<WebAssembly.Module>;
  /** Runs the worker's module with these globals. */
  readonly worker: (globals: object) => unknown;

  constructor(origin: number, module: () => Promise<WebAssembly.Module>, worker: (globals: object) => unknown) {
    this.clock = new Clock(origin);
    this.locks = new Locks(this.clock);
    this.files = new Files(this.clock);
    this.channels = new Channels(this.clock);
    this.module = module;
    this.worker = worker;
  }

  /** Ends a page or a worker: the browser releases its locks, files and timers. */
  end(owner: Owner): void {
    owner.alive = false;
    this.clock.forget(owner);
    this.locks.forget(owner);
    this.files.forget(owner);
    this.channels.forget(owner);
  }
}

/** localStorage of an origin: its entries are properties. */
class LocalStorage {
  getItem(key: string): string | null { return Object.hasOwn(this, key) ? (this as unknown as Record<string, string>)[key]! : null; }
  setItem(key: string, value: string): void { (this as unknown as Record<string, string>)[key] = `${value}`; }
  removeItem(key: string): void { delete (this as unknown as Record<string, string>)[key]; }
}

const here = globalThis as unknown as Record<string, unknown>;

/** Globals of the process that no realm may have: a test may run in jsdom. */
const hidden = ["process", "fs", "document", "window", "Go", "FileSystemSyncAccessHandle", "IDBKeyRange", "indexedDB", "ServiceWorkerGlobalScope", "SharedWorker", "WorkerGlobalScope"];

/** The globals that pages and workers have in common. */
function common(world: World, owner: Owner, worker: boolean): Record<string, unknown> {
  const { clock } = world;
  const later = (repeat: boolean) => (run: (...args: unknown[]) => void, ms?: number, ...args: unknown[]): number =>
    clock.set(owner, () => run(...args), ms, repeat);
  const clear = (id: unknown): void => clock.clear(id);
  const globals: Record<string, unknown> = Object.create(globalThis) as Record<string, unknown>;
  const own: Record<string, unknown> = {
    ...Object.fromEntries(hidden.map((name) => [name, undefined])),
    AbortController, AbortSignal: signals(clock, owner), Blob: here["Blob"], CustomEvent, DOMException, Event, EventTarget, Request: here["Request"], URL,
    TextEncoder: here["TextEncoder"] ?? Encoder, TextDecoder: here["TextDecoder"] ?? Decoder,
    BroadcastChannel: world.channels.classFor(owner), MessageChannel: world.channels.pairFor(owner),
    Date: dates(clock), performance: { now: () => clock.now, timeOrigin: clock.origin },
    setTimeout: later(false), setInterval: later(true), structuredClone: here["structuredClone"], clearTimeout: clear, clearInterval: clear, queueMicrotask, console,
    crypto: {
      getRandomValues: (array: Uint8Array<ArrayBuffer>) => webcrypto.getRandomValues(array),
      subtle: { digest: (...args: Parameters<typeof webcrypto.subtle.digest>) => clock.outside(webcrypto.subtle.digest(...args)) },
    },
    navigator: { locks: world.locks.of(owner), storage: { getDirectory: async () => world.files.root(owner, worker) } },
    isSecureContext: true, origin: new URL(page).origin, location: { href: page, origin: new URL(page).origin },
    fetch: fetching(world, owner), WebSocket: Unreachable,
    WebAssembly: Object.create(WebAssembly, {
      compileStreaming: { value: () => clock.outside(world.module()) },
      instantiate: { value: (...args: Parameters<typeof WebAssembly.instantiate>) => clock.outside(WebAssembly.instantiate(...args)) },
    }) as object,
    reportError: (error: unknown) => clock.task({ alive: true, suspended: false }, () => { throw error; }),
  };
  define(globals, { ...own, globalThis: globals, self: globals, top: globals, postMessage: undefined, close: undefined, onmessage: undefined });
  return globals;
}

const page = "https://holdfast.test/";

/** Gives an object properties of its own. An assignment could call a setter of jsdom's globals, which all tabs would share. */
function define(globals: object, values: object): void {
  for (const [name, value] of Object.entries(values)) Object.defineProperty(globals, name, { value, writable: true, configurable: true, enumerable: true });
}

/** Date, at the time of the test. */
function dates(clock: Clock): unknown {
  return class extends Date {
    constructor(...args: [] | [number]) { super(...(args.length ? args : [clock.wall]) as [number]); }
    static override now(): number { return clock.wall; }
  };
}

/** AbortSignal, also for signals of another library's AbortController. */
function signals(clock: Clock, owner: Owner): unknown {
  const any = (all: AbortSignal[]): AbortSignal => {
    const end = new AbortController();
    for (const one of all) {
      if (one.aborted) end.abort(one.reason);
      one.addEventListener("abort", () => end.abort(one.reason));
    }
    return end.signal;
  };
  const timeout = (ms: number): AbortSignal => {
    const end = new AbortController();
    clock.set(owner, () => end.abort(new DOMException("the time is over", "TimeoutError")), ms);
    return end.signal;
  };
  const abort = (reason?: unknown): AbortSignal => {
    const end = new AbortController();
    end.abort(reason);
    return end.signal;
  };
  const isSignal = (value: unknown): boolean => typeof value === "object" && value !== null && "aborted" in value && "addEventListener" in value;
  return class { static any = any; static timeout = timeout; static abort = abort; static [Symbol.hasInstance](value: unknown): boolean { return isSignal(value); } };
}

/** fetch: the program of the package, and a server unless the test has cut it off. */
function fetching(world: World, owner: Owner): (url: unknown, init?: RequestInit) => Promise<unknown> {
  return async (url, init) => {
    if (String(url) === `${page}holdfast.wasm`) return { ok: true, headers: new Map([["Content-Type", "application/wasm"]]) };
    if (!owner.alive) return new Promise(() => undefined);
    if (!world.online) throw new TypeError("the test has cut the network");
    const { cache, credentials, referrerPolicy, ...rest } = init ?? {}; // a browser's alone
    return world.clock.outside(fetch(String(url), rest));
  };
}

/** A connection for events that never opens, so clients of a server poll it. */
class Unreachable {
  onclose: (() => void) | undefined;
  constructor() { queueMicrotask(() => this.onclose?.()); }
  close(): void { /* is closed */ }
}

/** The globals of a page. `ended` collects what else ends with it. */
export function pageGlobals(world: World, owner: Owner, workers: Set<Owner>): Record<string, unknown> {
  const globals = common(world, owner, false);
  const events = new EventTarget(), document = new EventTarget();
  define(document, { hidden: false, visibilityState: "visible", defaultView: globals });
  class Worker extends Receiver {
    onerror: ((event: { message: string; preventDefault(): void }) => void) | null = null;
    readonly #owner: Owner = { alive: owner.alive, suspended: owner.suspended };
    readonly #scope: Record<string, unknown> & { onmessage?: (event: object) => void };

    constructor() {
      super();
      workers.add(this.#owner);
      const scope = this.#scope = common(world, this.#owner, true);
      scope["postMessage"] = (message: unknown) => {
        const data = copied(message);
        world.clock.task(owner, () => this.#owner.alive && this.hear(data));
      };
      scope["close"] = () => this.terminate();
      this.#run(() => world.worker(scope));
    }

    postMessage(message: unknown): void {
      const data = copied(message);
      this.#run(() => this.#scope.onmessage?.({ type: "message", data }));
    }

    #run(run: () => void): void {
      world.clock.task(this.#owner, () => {
        try {
          run();
        } catch (error) {
          world.clock.task(owner, () => this.onerror?.({ message: String(error), preventDefault: () => undefined }));
        }
      });
    }

    terminate(): void {
      world.end(this.#owner);
      workers.delete(this.#owner);
    }
  }
  define(globals, {
    document, localStorage: world.storage, Worker,
    addEventListener: events.addEventListener.bind(events), removeEventListener: events.removeEventListener.bind(events), dispatchEvent: events.dispatchEvent.bind(events),
  });
  return globals;
}
