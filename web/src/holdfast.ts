// The facade, which a page imports. It works from its first line on; calls wait for the Go runtime.
// See holdfast.d.ts for its guarantees.

import type * as Contract from "../holdfast";
import "./dispose";
import { beforeClose, deadline, inTime, limitOf, loadedWithin, within } from "./deadline";
import { revived } from "./events";
import { asError, AutoSaveError, problem, ProjectLockError } from "./errors";
import { Handle } from "./handle";
import { type Entry, Lease, type LeaseFields } from "./lease";
import { asked, both, checkActive, Locks, type LockRequest, type Requester } from "./locks";
import { type Modules, modules } from "./modules";
import { type Acquisition, checked, checkOpen, inBrowser, noPage, type Token } from "./options";
import type { Callback, Config, Host, Listener, Method, RawEvent } from "./protocol";
import { callListener } from "./call-listener";
import { join, preload, type SharedHost, tooSlow } from "./runtime";
import type { Taking } from "./snapshot";
import type { Start } from "./service/candidate";
import { stub } from "./service/stub";
import { runtime } from "./start";
import { Subscribers } from "./subscribers";
import { giveToken } from "./token";
import { uuid } from "./uuid";
import type { Saver } from "./wire";

export { AutoSaveError, ProjectLockError };

declare const __VERSION__: string;
declare global { interface Document { readonly prerendering?: boolean } }

/** How long the runtime may take to load. A slow line gets two minutes the next time. */
let loadLimitMs = 30_000;

class Holdfast extends (Subscribers as new () => Pick<Contract.Holdfast, keyof EventTarget | "subscribe"> & Subscribers<Contract.ProjectLockEvent>) implements Contract.Holdfast {
  declare readonly ownerId: string;
  readonly version = __VERSION__;
  ready!: Promise<void>; // of the last time that the runtime began to load
  declare readonly locks: Contract.LockManagerLike;

  #host: SharedHost | undefined;
  #write: Host["journal"] | undefined; // writes drafts, also before the runtime runs
  #starting: Promise<SharedHost> | undefined;
  #over: ProjectLockError | undefined; // why no call is possible any more
  #closing: Promise<void> | undefined;
  #gone = new AbortController(); // aborts when it closes
  readonly #start: (listener: Listener, ended: AbortSignal) => Promise<SharedHost>;
  #ended = new AbortController(); // ends the host, whether it runs or is still loading
  #pending = new Set<(reason: ProjectLockError) => void>();
  #used = 0; // when a call began or ended
  #leases = new Map<string, Entry>();
  #savers = new Map<number, Saver>();
  #handles = new Set<Pick<Handle, "leave">>();
  #replaced: number[] = []; // when the runtime was, the last time first

  readonly #resource: string;
  readonly #token: Token | undefined;
  readonly #modules: Modules;

  constructor({ ownerId, root, strategy }: Config, token: Token | undefined, signal: AbortSignal | undefined, start: (listener: Listener, ended: AbortSignal) => Promise<SharedHost>, modules: Modules) {
    super();
    this.#modules = modules;
    this.ownerId = ownerId;
    this.#resource = `holdfast:${root}`;
    const file: Requester = (request, signal, run) => this.#run("request", { ...request, asked: asked() }, signal, run);
    // Web Locks need no Go between the page and the browser.
    const browser: Requester = (...request) => this.#direct(...request);
    this.locks = globalThis.navigator?.locks
      ? new Locks(strategy === "file-lock" ? both(browser, file) : browser, () => this.#untilOver(() => navigator.locks?.query()))
      : new Locks(file, () => this.#call("query"));
    this.#token = token;
    this.#start = start;
    if (!inBrowser) this.#over = noPage();
    if (signal?.aborted) this.#over = problem("aborted", "its signal has aborted");
    void this.#running;
    const abort = (): void => void this.close().catch(() => undefined); // unsaved text becomes a draft
    signal?.addEventListener("abort", abort, { signal: this.#gone.signal });
  }

  /**
   * The runtime that runs or loads. A load that failed is repeated. A page that the browser renders in advance waits until it is shown: before
   * that, the browser starts no worker and answers no request for a lock or file.
   */
  get #running(): Promise<SharedHost> {
    if (!this.#starting) {
      this.#starting = this.#over ? Promise.reject(this.#over) : globalThis.document?.prerendering
        ? this.#untilOver(() => navigator.locks?.query()).then(() => this.#begin()) : this.#begin();
      this.ready = this.#settling(this.#starting.then(() => undefined));
      this.ready.catch(() => undefined); // every call reports it
    }
    return this.#starting;
  }

  #begin(): Promise<SharedHost> {
    const attempt = new AbortController(), signal = AbortSignal.any([this.#ended.signal, attempt.signal]);
    // In the back/forward cache nothing runs: other pages would wait for the locks of this one, and for the file of locks if it is open. The
    // worker may have it open for 200 ms after a call: twice the time in opfs/tables.js.
    addEventListener("pagehide", ({ persisted }) => {
      if (persisted && (this.#holds || performance.now() - this.#used < 200)) this.#host?.sleep();
    }, { signal });
    return new Promise((resolve, reject) => {
      const failed = (why: unknown): void => {
        if (signal.aborted) return;
        attempt.abort();
        const error = asError(typeof why === "string" ? `the Go runtime did not start: ${why}` : why);
        if (error.retryable) this.#starting = undefined;
        else this.#finish(this.#over = error as ProjectLockError);
        reject(error);
      };
      within(this.#start({ // a replaced one may still report events
        event: (e) => signal.aborted || this.#dispatch(e),
        died: (why, replace) => signal.aborted || (this.#host ? this.#died(why, replace) : failed(replace && this.#mayReplace() ? problem("load-failed", `${why}; try again`) : why)),
        slept: () => this.#sleep(),
        writes: (journal) => { this.#write = journal; },
      }, signal), loadLimitMs, () => {
        if (!signal.aborted) loadLimitMs = 120_000;
        return tooSlow();
      }).then((host) => { if (!signal.aborted) resolve(this.#host = host); }, failed);
    });
  }

  readonly #loads = (): boolean => !this.#host && !this.#over;
  get #holds(): number { return this.#leases.size + this.#savers.size; }

  /** Ends the runtime and releases its locks; it begins again when the page is shown. */
  #sleep(): void {
    this.#lose(problem("lease-lost", "the page entered the back/forward cache", "renew"), ({ signal }) =>
      new Promise((begun, failed) => addEventListener("pageshow", () => this.#begin().then(begun, failed), { once: true, signal })));
  }

  acquireProjectLock(options?: Contract.AcquireOptions): Promise<Lease> {
    return this.#acquiring(options, async (fields, entry, signal) =>
      this.#lease(await this.#call("acquire", fields, signal) as LeaseFields, entry.end.signal));
  }

  async withProjectLock<T>(executor: (lease: Contract.ProjectLockLease) => T | Promise<T>, options?: Contract.WithLockOptions): Promise<T> {
    if (typeof executor !== "function") throw problem("invalid-argument", "the executor must be a function");
    return this.#acquiring(options, (fields, entry, signal) =>
      this.#run("with", fields, signal, (lease) => executor(this.#lease(lease as LeaseFields, entry.end.signal))));
  }

  async renewProjectLock(lease: Contract.ProjectLockLease): Promise<Lease> {
    const { signal } = this.#own(lease, "renew");
    if (signal.reason instanceof ProjectLockError) throw signal.reason;
    return this.#lease(await this.#call("renew", { leaseId: lease.leaseId }, undefined, undefined, "renew") as LeaseFields, signal);
  }

  async releaseProjectLock(lease: Contract.ProjectLockLease, options?: { force?: boolean }): Promise<void> {
    if (this.#own(lease, "release").signal.aborted) return;
    await this.#call("release", { force: options?.force, leaseId: lease.leaseId }, undefined, undefined, "release");
  }

  inspect(): ReturnType<Contract.Holdfast["inspect"]> {
    return this.#call("inspect") as ReturnType<Contract.Holdfast["inspect"]>;
  }

  async initAutoSave(snapshot: Taking, options?: Contract.AutoSaveOptions): Promise<Contract.AutoSave> {
    const autosave = this.createAutoSave(snapshot, options);
    await autosave.ready.catch((failure: unknown) => { void autosave.dispose(); throw failure; }); // otherwise it would begin again by itself
    return autosave;
  }

  createAutoSave(snapshot: Taking, options?: Contract.AutoSaveOptions): Contract.AutoSave {
    const { signal, path } = { ...options };
    if (path?.slice) options = { ...options, path: path.slice() };
    const make = async (handle: Handle, take: Taking, given: AbortSignal): Promise<Saver> => {
      const over = AbortSignal.any([given, this.#ended.signal]); // it may begin again with the next runtime
      const previewed = this.#modules.preview(handle, options, this.#loads, over).catch(() => undefined);
      const { startAutoSave } = await this.#modules.autosave();
      return startAutoSave(handle, this.#running, given, this, typeof snapshot === "function" ? take : snapshot, options, this.#savers,
        (method, arg, signal, end = Infinity) => this.#call(method, { ...arg, limitMs: limitOf(end) }, signal), this.#journal, inTime, deadline, (event) => this.#tell(event), asError, previewed, over);
    };
    const handle = new Handle(snapshot, signal,
      (...made) => this.#over ? Promise.reject(this.#over) : this.#settling(make(...made)), (gone) => this.#handles.delete(gone));
    this.#handles.add(handle);
    if (this.#closing) void handle.dispose();
    return handle;
  }

  serve(name: string, start: Start): never {
    return stub(this.#handles, this.#closing, async (...asked) => {
      if (this.#over) throw this.#over;
      return this.#modules.serve(this.#resource.slice(9), name, start, ...asked);
    }) as never;
  }

  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  [Symbol.asyncDispose](): Promise<void> { return this.close(); }

  async #close(): Promise<void> {
    this.#gone.abort();
    const end = deadline();
    const saved = await Promise.allSettled([...this.#handles].map((handle) => handle.leave(beforeClose(end))));
    const closing = (async () => this.#host && this.#call("close", { limitMs: limitOf(end) }))();
    this.#over ??= problem("aborted", "this Holdfast was closed");
    await inTime(closing, end).catch(() => undefined); // it has died, or does not answer: both are ends as well
    this.#finish(this.#over);
    for (const { reason } of saved as PromiseRejectedResult[]) if (reason) throw reason;
  }

  #journal: Host["journal"] = (method, ...args) => this.#untilOver(() => this.#write!(method, ...args) as Promise<never>) as never;

  /** Calls Go once it runs; settles with an error of Holdfast whatever happens to Go. */
  #call(method: Method, arg?: unknown, signal?: AbortSignal, callback?: Callback, operation?: Contract.Operation): Promise<unknown> {
    if (this.#over) return Promise.reject(this.#over);
    const call = async (): Promise<unknown> => {
      checkActive();
      return this.#host!.call(method, arg, signal, callback);
    };
    return this.#settling(this.#host ? call() : loadedWithin(this.#running, 0, signal).then(call), operation);
  }

  /** The promise, or the end of this Holdfast if that comes first. */
  #settling<T>(promise: Promise<T>, operation?: Contract.Operation): Promise<T> {
    const used = (): void => { this.#used = performance.now(); };
    const settled = promise.catch((failure: unknown) => { throw this.#over ?? asError(failure, operation); }).finally(used);
    used();
    settled.catch(() => undefined);
    return this.#untilOver(() => settled); // in the page host, the call itself may have ended it
  }

  /** Asks the browser for a lock; the end of this Holdfast ends the request and releases the lock. */
  #direct({ name, ...options }: LockRequest, signal: AbortSignal | undefined, run: (lock: unknown) => unknown): Promise<unknown> {
    const ended = this.#ended.signal;
    const waiting = options.ifAvailable || options.steal ? options : { ...options, signal: signal ? AbortSignal.any([signal, ended]) : ended };
    // After the end, the caller's promise has rejected.
    return this.#untilOver(() => navigator.locks.request(name, waiting as LockOptions, (lock) => this.#untilOver(async () => ended.aborted || run(lock))));
  }

  /** The result of call, or the end of this Holdfast if that comes first. */
  #untilOver<T>(call: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#over) return reject(this.#over);
      this.#pending.add(reject);
      call().then(resolve, reject).finally(() => this.#pending.delete(reject));
    });
  }

  /** Checks the options, registers the lease to come, and removes it if it does not come. */
  async #acquiring<T>(options: Contract.AcquireOptions | undefined, acquire: (fields: object, entry: Entry, signal?: AbortSignal) => Promise<T>): Promise<T> {
    const { signal, onReadonly, ...fields } = checked(options);
    const acquisition: Acquisition = { ...fields, leaseId: uuid() };
    const entry: Entry = { end: new AbortController(), onReadonly };
    this.#leases.set(acquisition.leaseId, entry);
    try {
      if (this.#loads()) {
        this.#modules.take(acquisition, this.#loads, entry.end.signal);
        acquisition.timeoutMs = await loadedWithin(this.#settling(this.#running.then(() => acquisition.lent)), acquisition.timeoutMs, signal);
        acquisition.lent = await acquisition.lent;
      }
      return await acquire(acquisition, entry, signal);
    } finally {
      if (!entry.granted) {
        this.#leases.delete(acquisition.leaseId);
        entry.end.abort(); // releases what the page holds
      }
    }
  }

  /** Calls Go, which calls run when the lock is granted and holds the lock until run has ended. */
  async #run<T>(method: Method, arg: object, signal: AbortSignal | undefined, run: (value: unknown) => T | Promise<T>): Promise<T> {
    let outcome: Promise<T> | undefined;
    let failed: { error: unknown } | undefined;
    const callback: Callback = async (value) => {
      outcome = this.#untilOver(async () => run(value)); // not after a close
      try {
        await outcome;
      } catch (error) {
        failed = { error };
        throw error;
      }
    };
    try {
      await this.#call(method, arg, signal, callback);
    } catch (failure) {
      // The lease may have ended while the executor ran; that matters more than the executor's result.
      if (failed && (failure as ProjectLockError).operation !== "renew" && (failure as ProjectLockError).code !== "runtime-crashed") throw failed.error;
      throw failure;
    }
    return outcome as Promise<T>;
  }

  #own(lease: Contract.ProjectLockLease, operation: Contract.Operation): Lease {
    if (lease instanceof Lease && lease.ownerId === this.ownerId) return lease;
    throw problem("invalid-argument", "the lease was not acquired here", operation);
  }

  #lease(fields: LeaseFields, signal: AbortSignal): Lease {
    return new Lease(fields, signal, (lease) => this.releaseProjectLock(lease));
  }

  #dispatch(raw: RawEvent): void {
    if (raw.type === "token") return void giveToken(raw, this.#token, (answer) => this.#host?.call("answer", answer));
    if (raw.saver) return this.#savers.get(raw.saver)?.heard(raw);
    const id = raw.leaseId ?? "";
    let entry = this.#leases.get(id);
    if (raw.type === "lock:acquired") {
      // The page may not have asked for it: then it belongs to an AutoSave.
      if (!entry) this.#leases.set(id, entry = { end: new AbortController() });
      entry.granted = true;
    }
    const event = revived(raw, (lease) => this.#lease(lease, entry?.end.signal ?? AbortSignal.abort()));
    // The signal aborts before the event comes, so that a listener finds it aborted.
    if (event.type === "lock:release-requested") entry?.end.abort();
    if (event.type === "lock:error" && !event.retryable) entry?.end.abort(event.error);
    this.#tell(event);
    const last = event.type === "lock:released" || event.type === "lock:readonly-entered" || (event.type === "lock:error" && event.operation === "release");
    if (last) this.#leases.delete(id);
    if (event.type === "lock:readonly-entered") callListener(() => entry?.onReadonly?.(event));
  }

  #tell(event: Contract.ProjectLockEvent): boolean {
    this.changed(event);
    return this.dispatchEvent(new CustomEvent(event.type, { detail: event, cancelable: true }));
  }

  /** The runtime died. */
  #died(why: unknown, replace = false): void {
    if (this.#over) return;
    if (replace && this.#mayReplace()) {
      this.#lose(problem("runtime-crashed", `the Go runtime was replaced (${why}); all leases are gone, acquire again`), () => this.#begin());
    } else {
      this.#lose(this.#over = problem("runtime-crashed", `the Go runtime died (${why}); all leases are gone, call openHoldfast again`));
    }
  }

  /** A worker that fails repeatedly has a cause that another worker does not remove. */
  #mayReplace(): boolean {
    const now = performance.now();
    this.#replaced.unshift(now);
    return !(now - this.#replaced[3]! < 60_000); // there may be no fourth one
  }

  /** Every lease and every call ends, and the page gets one event. If another runtime begins, later calls wait for it. */
  #lose(lastError: ProjectLockError, begin?: (life: AbortController) => Promise<SharedHost>): void {
    const reason = lastError.code as Contract.ReadonlyReason, entries = [...this.#leases.values()], silent = reason === "lease-lost" && !this.#holds;
    this.#finish(lastError);
    if (begin) {
      this.#host = undefined;
      this.#starting = begin(this.#ended = new AbortController());
      this.#starting.catch(() => undefined);
    }
    if (silent) return; // another Holdfast of this page has lost its leases
    const event = Object.freeze({
      type: "lock:readonly-entered", at: Date.now(), ownerId: this.ownerId, resource: this.#resource, reason, lastError, retryable: false,
    } as const);
    this.#tell(event);
    for (const { onReadonly } of entries) callListener(() => onReadonly?.(event));
  }

  #finish(why: ProjectLockError): void {
    this.#ended.abort(why);
    for (const reject of this.#pending) reject(why);
    this.#pending.clear();
    for (const { end } of this.#leases.values()) end.abort(why);
    this.#leases.clear();
  }
}

/** An id for the tabs that share Web Locks: they share localStorage, too. Undefined where a page may not store anything. */
function browserId(): string | undefined {
  try {
    return localStorage.holdfastId ||= uuid();
  } catch {
    return undefined;
  }
}

export function createHoldfast(options?: Contract.OpenOptions): Contract.Holdfast {
  const opening = checkOpen(options, inBrowser), { root, ownerName, server, token, signal, strategy } = opening;
  // File locks need file storage; with Web Locks it is not needed.
  const spare = globalThis.isSecureContext && !navigator.locks;
  const config = { ownerId: uuid(), ownerName, root, strategy: strategy === "auto" && !spare ? "web-lock" : strategy, server, browser: server && browserId(), token: !!token };
  return new Holdfast(config, token, signal, (listener, ended) => join(...runtime(opening), config, listener, ended),
    modules(opening, (root) => createHoldfast({ ...options, root, server: undefined, signal: undefined } as Contract.OpenOptions)));
}

export async function preloadHoldfast(options?: Parameters<typeof Contract.preloadHoldfast>[0]): Promise<void> {
  const opening = checkOpen(options, inBrowser);
  if (!inBrowser) throw noPage();
  return preload(...runtime(opening), loadLimitMs);
}

export async function openHoldfast(options?: Contract.OpenOptions): Promise<Contract.Holdfast> {
  const holdfast = createHoldfast(options);
  if (!inBrowser || options?.signal?.aborted) await holdfast.ready; // says why
  return holdfast;
}
