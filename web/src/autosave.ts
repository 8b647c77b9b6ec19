// AutoSave's part in the page: a module of its own, loaded when a page wants it. What is saved,
// when and under which lock is decided in Go; here are the events, the snapshot, and what a page
// must know without asking.

import type * as Contract from "../holdfast";
import type { Method, RawEvent, Reason } from "./protocol";
import * as rescue from "./rescue";

/** What the facade lends an AutoSave. */
interface Wire {
  holdfast: Contract.Holdfast;
  call(method: Method, arg: object, signal?: AbortSignal): Promise<unknown>;
  /** Where what Go tells of an AutoSave goes, by its number. */
  savers: Map<number, Saver>;
  /** Tells the listeners of the lock; returns whether none of them prevented the default. */
  tell(event: Contract.ProjectLockEvent): boolean;
  error(reason: unknown): Contract.ProjectLockError;
  /** Names the project among what is stored in this origin. */
  key: string;
}

/** What the facade needs of an AutoSave. */
export interface Saver { heard(raw: RawEvent): void; dispose(): Promise<void> }

type Taking = () => Contract.Snapshot | Promise<Contract.Snapshot>;
type Told = RawEvent & { state?: Contract.AutoSaveState & { lastError?: Reason }; ask?: number; error?: Reason; lease?: Contract.ProjectLockLease };

/** Go hears of a change at once, and of those that follow in this time with the last of them. */
const markMs = 25;

/** How long telling that a page is read-only waits for what it had. */
const soonMs = 60;

const encoder = new TextEncoder();

/** UTF-8. Engines are several times as fast where they need not find out the size first, and memory costs time as well. */
function encode(text: string): Uint8Array {
  const ascii = new Uint8Array(text.length);
  const { read, written } = encoder.encodeInto(text, ascii);
  if (read === text.length) return ascii;
  const bytes = new Uint8Array(written + 3 * (text.length - read));
  bytes.set(ascii.subarray(0, written));
  return bytes.subarray(0, written + encoder.encodeInto(text.slice(read), bytes.subarray(written)).written);
}

let lastId = 0;

/** A copy of what the page may change afterwards. */
function copied(snapshot: Contract.Snapshot): string | Uint8Array {
  if (typeof snapshot === "string") return snapshot;
  if (snapshot instanceof Uint8Array) return new Uint8Array(snapshot);
  const json = typeof snapshot === "object" && snapshot !== null ? JSON.stringify(snapshot) : undefined;
  if (json === undefined) throw new TypeError("the snapshot must be a string, a Uint8Array or an object");
  return json;
}

const encoded = (copy: string | Uint8Array): Uint8Array => typeof copy === "string" ? encode(copy) : copy;

/** To encode as many characters is a task of its own: the page may be busy for long enough already. */
const long = 100_000;

/** Lets go first what waits for this thread. Timers of a hidden page would take a second. */
const pause = (): Promise<void> => new Promise((done) => {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => { port1.close(); done(); };
  port2.postMessage(0);
});

class AutoSaveError extends Error implements Contract.AutoSaveError {
  override readonly name = "AutoSaveError";
  readonly code: Contract.AutoSaveErrorCode;
  readonly retryable: boolean;
  readonly generation?: string;

  constructor({ message, code, retryable, resource }: Reason) {
    super(message);
    this.code = code as Contract.AutoSaveErrorCode;
    this.retryable = retryable;
    if (resource !== undefined) this.generation = resource;
  }
}

// The arguments stand one by one, and not in a Wire: their names would weigh on the facade.
// Go has no lone surrogates: two that differ would become one document.
const odd = (path: unknown): boolean => path !== undefined
  && !(Array.isArray(path) && path.every((part) => typeof part === "string" && !/\p{Surrogate}/u.test(part)));

export async function startAutoSave(holdfast: Contract.Holdfast, snapshot: Taking, options: Contract.AutoSaveOptions = {},
  savers: Wire["savers"], key: string, call: Wire["call"], tell: Wire["tell"], error: Wire["error"]): Promise<AutoSave> {
  const wire: Wire = { holdfast, savers, key, call, tell, error };
  const fault = (what: string): Contract.ProjectLockError =>
    wire.error({ code: "invalid-argument", operation: "acquire", retryable: false, message: `invalid-argument: ${what}` });
  if (typeof snapshot !== "function") throw fault("the snapshot must be a function");
  if (typeof options !== "object" || options === null) throw fault("options must be an object");
  if ([options.path, options.lock?.path].some(odd)) throw fault("path must be an array of strings, without lone surrogates");
  const within: unknown = options.lock?.within;
  if (within !== undefined && typeof (within as Contract.ProjectLockLease | null)?.leaseId !== "string") throw fault("lock.within must be a lease");
  const autosave = new AutoSave(wire, snapshot, options);
  await autosave.opened;
  return autosave;
}

class AutoSave extends EventTarget implements Contract.AutoSave, Saver {
  readonly opened: Promise<void>;
  readonly #wire: Wire;
  readonly #take: Taking;
  readonly #onReadonly: Contract.AcquireOptions["onReadonly"];
  readonly #id = ++lastId;
  readonly #over = new AbortController(); // takes the listeners off the page
  #state: Contract.AutoSaveState = Object.freeze({ phase: "awaiting-lock", pendingBytes: 0, retryCount: 0, storage: "opfs" });
  #readOnly = true;
  #leases = new Map<string, Contract.ProjectLockLease>();
  #leaseId = "";
  #early: (() => void)[] | undefined = []; // what the page is told once it has this object
  #dirty = false; // something has changed since the last snapshot
  #more = false;  // and Go has not heard of the last of it
  #armed = false; // it will
  #timer: ReturnType<typeof setTimeout> | undefined;
  #asleep = false; // from pagehide until it has begun anew
  #waking = false; // it is about to
  #owed: Promise<Uint8Array | undefined> | undefined; // taken when the page was put to sleep, and kept nowhere else
  #had: Promise<Uint8Array | undefined> | undefined; // what was not saved when the page became read-only
  readonly #options: object;

  constructor(wire: Wire, take: Taking, { lock, ...options }: Contract.AutoSaveOptions) {
    super();
    this.#wire = wire;
    this.#take = take;
    const { signal, onReadonly, within, ...fields } = { ...lock };
    this.#onReadonly = onReadonly;
    wire.savers.set(this.#id, this);
    this.#options = { ...options, onReadonly: onReadonly !== undefined, ...(lock !== undefined && { lock: { ...fields, ...(within && { within: within.leaseId }) } }), saver: this.#id };
    this.opened = this.#open(signal);
  }

  async #open(signal: AbortSignal | undefined): Promise<void> {
    const { holdfast } = this.#wire;
    const stop = holdfast.subscribe((event) => {
      if (event.type === "lock:acquired" || event.type === "lock:renewed") this.#leases.set(event.lease.leaseId, event.lease);
      if (event.type === "lock:readonly-entered" && event.reason === "runtime-crashed") void this.#died();
      if (event.type === "lock:released" || event.type === "lock:readonly-entered") this.#leases.delete(event.leaseId ?? "");
    });
    this.#over.signal.addEventListener("abort", stop);
    try {
      await this.#wire.call("autosave", this.#options, signal);
    } catch (failure) {
      this.#end();
      throw this.#error(failure);
    }
    this.#watch();
    // The page gets this object before the events of how it began: not in a microtask, and not by a
    // timer, which is slow in a hidden page.
    void pause().then(() => {
      const early = this.#early ?? [];
      this.#early = undefined;
      for (const tell of early) tell();
    });
  }

  get readOnly(): boolean { return this.#readOnly; }

  get lease(): Contract.ProjectLockLease | undefined { return this.#readOnly ? undefined : this.#leases.get(this.#leaseId); }

  state(): Contract.AutoSaveState {
    // Go may not have heard yet of what this page has marked.
    if (this.#dirty && this.#state.phase === "idle") return { ...this.#state, phase: "debouncing", pendingBytes: Math.max(1, this.#state.pendingBytes) };
    return this.#state;
  }

  markDirty(): void {
    this.#dirty = this.#more = true;
    if (this.#armed) return;
    this.#armed = true;
    queueMicrotask(this.#mark); // many marks of one task are one
  }

  #mark = (): void => {
    if (!this.#more) return void (this.#armed = false);
    void this.#call("mark").catch(() => undefined);
    this.#timer = setTimeout(this.#mark, markMs);
  };

  /** The page was asked for its text, or given one: the next change is news. */
  #clean(): void {
    clearTimeout(this.#timer);
    this.#dirty = this.#more = this.#armed = false;
  }

  flushNow(): Promise<Contract.Generation> { return this.#call("flush") as Promise<Contract.Generation>; }

  history(): Promise<Contract.Generation[]> { return this.#call("history") as Promise<Contract.Generation[]>; }

  read(id: string): Promise<Uint8Array> { return this.#call("read", { id }) as Promise<Uint8Array>; }

  restore(id: string): Promise<Uint8Array> { return this.#call("restore", { id }) as Promise<Uint8Array>; }

  pin(id: string, name: string): Promise<Contract.Generation> { return this.#call("pin", { id, name }) as Promise<Contract.Generation>; }

  async requestEdit({ signal, ...options }: { force?: boolean; graceMs?: number; signal?: AbortSignal } = {}): Promise<void> {
    await this.#call("edit", options, signal);
  }

  async dispose(): Promise<void> {
    if (this.#over.signal.aborted) return;
    try {
      await this.#call("dispose");
    } finally {
      this.#end();
    }
  }

  /** Calls Go, which hears first of what is marked. */
  async #call(method: Method, arg?: object, signal?: AbortSignal): Promise<unknown> {
    const marked = this.#more;
    this.#more = false;
    try {
      return await this.#wire.call(method, { ...arg, saver: this.#id, marked }, signal);
    } catch (failure) {
      throw this.#error(failure);
    }
  }

  /** What is AutoSave's own has a name of its own; the rest is as the lock layer tells it. */
  #error(failure: unknown): Error & { code: string } {
    const error = this.#wire.error(failure);
    return ["save", "read", "edit"].includes(error.operation) ? new AutoSaveError(error) : error;
  }

  #end(): void {
    this.#over.abort();
    this.#wire.savers.delete(this.#id);
    this.#readOnly = true;
  }

  heard(raw: Told): void {
    switch (raw.type) {
      case "autosave:snapshot": return void this.#answer(raw, this.#bytes());
      case "autosave:rescued": return void this.#answer(raw, Promise.resolve(rescue.find(this.#key)));
      case "autosave:drop": return rescue.drop(this.#key, raw["token"] as number);
      case "lock:handover-requested": return void this.#answer(raw, this.#consent(raw));
      case "lock:readonly-entered":
        return this.#onReadonly?.(Object.freeze({ ...raw, lastError: this.#wire.error(raw["lastError"]) }) as unknown as Contract.ProjectLockEvent);
    }
    const { lastError, readOnly, ...state } = raw.state as Contract.AutoSaveState & { readOnly: boolean };
    if (!readOnly) this.#had = undefined;
    else if (this.#unsaved) this.#had = this.#soon();
    this.#state = Object.freeze({ ...state, ...(lastError && { lastError: this.#error(lastError) }) });
    this.#readOnly = readOnly;
    // Go tells of it at once, and may not have the text yet, nor know of what was typed last.
    if (raw.type === "autosave:readonly" && (this.#dirty || state.pendingBytes > 0)) this.#owed ??= this.#had;
    if (raw.type === "autosave:editable") {
      this.#clean();
      this.#readOnly = false; // from here on the page has the text, and what is typed belongs to it
      this.#leaseId = raw.leaseId ?? "";
    }
    // What was kept for a moment that did not come.
    if (raw.type === "autosave:saved" && !this.#dirty) rescue.drop(this.#key, (raw["generation"] as Contract.Generation).token);
    const tell = (): void => void this.dispatchEvent(new CustomEvent(raw.type, { detail: this.#detail(raw) }));
    if (this.#early) this.#early.push(tell);
    else if (this.#owed && raw.type !== "autosave:phase") void this.#owe(raw, tell);
    else tell();
    if (raw.ask) void this.#answer(raw, Promise.resolve());
  }

  /** Tells with what the page had when it was put to sleep. */
  async #owe(raw: Told, tell: () => void): Promise<void> {
    raw["unsaved"] ??= await this.#owed;
    this.#owed = undefined;
    tell();
  }

  get #key(): string { return `${this.#wire.key}:rescue`; }

  #detail(raw: Told): unknown {
    const { type, state, saver, ask, leaseId, generation, error, ...detail } = raw;
    switch (type) {
      case "autosave:phase": return this.#state;
      case "autosave:saved": return generation;
    }
    return Object.freeze({ ...detail, ...(error && { error: this.#error(error) }) });
  }

  async #answer({ ask }: Told, answer: Promise<object | void>): Promise<void> {
    const found = await answer.catch((error: unknown) => ({ failed: String((error as Error)?.message || error || "no") }));
    await this.#wire.call("answer", { ...found, ask, saver: this.#id }).catch(() => undefined);
  }

  /** What the page has now, as bytes that are nobody else's; their buffer may be larger. */
  async #bytes(): Promise<{ bytes: Uint8Array }> {
    const taken = this.#take();
    this.#clean(); // what is marked while a promise is awaited leads to another write
    const copy = copied(await taken);
    if (copy.length > long) await pause();
    return { bytes: encoded(copy) };
  }

  /** The same for telling it, unless that takes longer than a page may go without being told. */
  async #soon(): Promise<Uint8Array | undefined> {
    try {
      return await Promise.race([Promise.resolve(this.#take()).then(copied).then(encoded), new Promise<undefined>((done) => setTimeout(done, soonMs))]);
    } catch {
      return undefined; // the page could not say
    }
  }

  /** Asks the page's listeners whether the lock may be handed over. */
  async #consent(raw: Told): Promise<void> {
    const lease = this.#leases.get(this.#leaseId) ?? raw.lease as Contract.ProjectLockLease;
    const delays: PromiseLike<unknown>[] = [];
    let refused: string | undefined;
    const refuse = (why = ""): void => void (refused ??= String(why) || "the page that edits has refused");
    const go = this.#wire.tell(Object.freeze({
      type: raw.type as "lock:handover-requested", at: Date.now(), ownerId: lease.ownerId, resource: lease.resource, leaseId: lease.leaseId,
      lease, from: raw["from"] as string, refuse, waitUntil: (delay: PromiseLike<unknown>) => void delays.push(delay),
    }));
    if (!go) refuse();
    await Promise.all(delays); // what rejects refuses
    if (refused !== undefined) throw new Error(refused);
  }

  #watch(): void {
    const { signal } = this.#over;
    const quietly = (method: Method) => void this.#call(method).catch(() => undefined);
    document.addEventListener("visibilitychange", () => document.hidden && this.#unsaved && quietly("flush"), { signal });
    document.addEventListener("freeze", () => {
      if (!this.#unsaved) return;
      this.#keep();
      quietly("flush");
    }, { signal });
    document.addEventListener("resume", () => quietly("resume"), { signal });
    // Twice: Firefox ends the script that runs as it closes a tab, be it in the midst of this, and only that one.
    let kept = false;
    addEventListener("pagehide", () => {
      kept = false;
      kept = !this.#unsaved || this.#keep();
    }, { signal, capture: true });
    addEventListener("pagehide", ({ persisted }) => {
      kept ||= !this.#unsaved || this.#keep();
      if (persisted) this.#sleep(kept);
      else quietly("suspend");
    }, { signal });
    addEventListener("pageshow", () => void this.#wake(), { signal });
  }

  /** Whether the page has something that is not durable. */
  get #unsaved(): boolean { return !this.#readOnly && (this.#dirty || this.#state.pendingBytes > 0); }

  #keep(): boolean {
    try {
      return rescue.keep(this.#key, this.lease?.token ?? 0, this.#take());
    } catch {
      return false; // the page could not say what to save
    }
  }

  /** The facade ends all that is held as the page goes into the back/forward cache. This begins anew when it comes back. */
  #sleep(kept: boolean): void {
    this.#asleep = true;
    this.#leases.clear();
    if (!kept) this.#owed = this.#bytes().then(({ bytes }) => bytes.slice(), () => undefined);
    this.#clean();
    this.#readOnly = true;
    this.#state = Object.freeze({ ...this.#state, phase: "readonly", pendingBytes: 0 });
    this.dispatchEvent(new CustomEvent("autosave:phase", { detail: this.#state }));
  }

  /** The page is shown, perhaps after it was put to sleep again before it was awake: what was under way then has failed, or still waits for the runtime. */
  async #wake(): Promise<void> {
    if (!this.#asleep || this.#waking) return;
    this.#waking = true;
    try {
      await this.#wire.call("autosave", this.#options);
      this.#asleep = false;
    } catch (failure) {
      this.#state = Object.freeze({ ...this.#state, lastError: this.#error(failure) });
      this.dispatchEvent(new CustomEvent("autosave:phase", { detail: this.#state }));
    } finally {
      this.#waking = false;
    }
  }

  /** The runtime has died: what the page has is offered to it once more. */
  async #died(): Promise<void> {
    const dirty = this.#unsaved;
    const lastError = await this.#call("history").then(() => undefined, (error: Error & { code: string }) => error);
    const unsaved = dirty ? await this.#bytes().then(({ bytes }) => bytes.slice(), () => undefined) : undefined;
    this.#end();
    this.#state = Object.freeze({ ...this.#state, phase: "readonly", ...(lastError && { lastError }) });
    this.dispatchEvent(new CustomEvent("autosave:phase", { detail: this.#state }));
    this.dispatchEvent(new CustomEvent("autosave:readonly", { detail: Object.freeze({ reason: "runtime-crashed", error: lastError, unsaved }) }));
  }
}
