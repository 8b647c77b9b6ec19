/// <reference lib="esnext.disposable" />
// Holdfast answers one question: may this page write? The answer is valid in all tabs
// of one browser and, with a Holdfast server, on all machines.
//
// All times are milliseconds; instants are Unix epoch milliseconds. Every promise
// settles: none hangs past its own time limit.

/** The mechanism by which a lease is held. */
export type Strategy = "web-lock" | "file-lock" | "remote";
/** An exclusive lock admits one holder; shared ones admit each other. */
export type LockMode = "exclusive" | "shared";
export type Operation = "acquire" | "renew" | "release" | "call";

/**
 * The codes of errors. Their spelling never changes; each comment names the operation and says whether the same call
 * may succeed later.
 */
export type LockErrorCode =
  // codes of the lock layer
  | "web-lock-unsupported" //  acquire, retryable: the fallback takes over at once
  | "acquire-denied"       //  acquire, retryable: held elsewhere; wait and try again
  | "acquire-timeout"      //  acquire, retryable: no answer or not granted within the limit
  | "fallback-conflict"    //  acquire, retryable: `.lock` names another living holder
  | "lease-stale"          //  renew, final: the TTL passed before a renewal succeeded
  | "renew-failed"         //  renew, retryable: a write or a request failed; the next one may succeed
  | "release-failed"       //  release, final: the record could not be removed
  | "not-allowed"          //  any operation, final: the server does not know the user, or the user may not do this
  // codes of the platform and of other operations
  | "call-lost"            //  call, final: the tab that ran the service ended after it had accepted the call, which may have happened
  | "load-failed"          //  any operation, retryable: the worker or the Wasm could not be fetched, or the worker ended before Go ran; calling again tries again
  | "lease-lost"           //  renew, final: stolen, handed over, its record was replaced, or the page entered the back/forward cache
  | "deadlock"             //  acquire, retryable: chosen as the victim of a wait cycle
  | "reentrant"            //  acquire, final: this owner holds it already; waiting would never end
  | "aborted"              //  acquire, final: the caller's AbortSignal fired
  | "unsupported"          //  acquire, final: no strategy works in this context (the message says why)
  | "invalid-argument"     //  any operation, final: the message names the option
  | "runtime-crashed";     //  any operation, final: the Wasm instance died, or its worker did; all its leases are gone

/** Every failure of this package. The message says what failed, on which resource, why, and what to do. */
export class ProjectLockError extends Error {
  readonly name: "ProjectLockError";
  readonly code: LockErrorCode;
  readonly operation: Operation;
  /** Whether the same call may succeed later. */
  readonly retryable: boolean;
  readonly resource?: string;
}

/** How long to wait between the attempts of an acquisition. The waiter keeps its position in the browser's queue meanwhile: a release hands the lock
 *  over at once, not at the next attempt. */
export interface Backoff {
  initialDelayMs?: number; // default 1000
  multiplier?: number;     // default 1.5
  maxDelayMs?: number;     // default 30000; never exceeded, jitter included
  jitter?: number;         // default 0.5: each delay is multiplied by a random factor in [1-j, 1+j]
  /** Default: 3 without timeoutMs; with timeoutMs, as many as fit into it. 0 = as many as fit. */
  maxRetries?: number;
}

/** Options are checked before anything happens: an invalid one rejects with "invalid-argument" and its name. */
export interface AcquireOptions {
  /** The place in the project's tree to lock; [] or absent is the project itself. A component is any text that is not
   *  empty. All components, encoded as in a URL and with their slashes, have at most 1,024 bytes. An exclusive lock of
   *  a place excludes all other owners from everything below it. */
  path?: string[];
  /** Several places at once: all are granted, or none. They are always acquired in one global order. Callers that
   *  acquire everything they need in one such call never form a deadlock. */
  paths?: string[][];
  /** The target's mode; every ancestor is locked shared. Default "exclusive". */
  mode?: LockMode;
  /** How many holders the target admits at once, first come first served. Default 1, at most 256; all callers that lock
   *  the target should set the same number. Not with mode "shared", `steal` or several paths. */
  slots?: number;
  /** The lease under which this one is acquired; the caller holds it while it waits. Together with the leases above it,
   *  it is a chain. Locks that the chain holds in a sufficient mode count as granted. Only along a chain are re-entry
   *  and deadlocks detected. Acquisitions without it are independent of each other, also in one page, and wait in the queue. */
  within?: ProjectLockLease;
  ttlMs?: number;               // default 25000 for web-lock, 30000 for file-lock and remote
  heartbeatIntervalMs?: number; // default 10000; must be shorter than ttlMs
  timeoutMs?: number;           // default 600000; 0 = one attempt, no waiting
  backoff?: Backoff;
  preferredStrategy?: Strategy;
  ifAvailable?: boolean;        // acquire-denied at once instead of waiting; acquire-timeout where nothing answers for 5 s
  steal?: boolean;              // steals the lock from its holder, whose lease ends with "lease-lost"
  signal?: AbortSignal;
  /** Called once, when a final failure makes the caller read-only. */
  onReadonly?: (event: ProjectLockEvent) => void;
}

/**
 * The permission to write, as it was at one moment. A lease object never changes: a renewal yields a new one, in
 * `lock:renewed` and from `renewProjectLock`. All snapshots of one lease share its `signal`, and each can be
 * renewed or released.
 *
 * A page that goes into the back/forward cache loses its leases: at that moment their `signal` aborts with
 * "lease-lost", one `lock:readonly-entered` is dispatched for all of them, and pending calls reject with "lease-lost".
 * When it is shown again it can acquire again. So nobody waits for a page that cannot run.
 */
export interface ProjectLockLease {
  readonly leaseId: string;   // UUID v4; the one written into `.lock`
  readonly ownerId: string;
  readonly ownerName?: string;
  readonly resource: string;  // the Web Lock's key, the `.lock` file's path, or the document's URL
  readonly strategy: Strategy;
  readonly viaFallback: boolean;
  readonly mode: LockMode;
  readonly paths: string[][];
  readonly slot?: number;
  readonly within?: string;   // leaseId of the enclosing lease
  /** Fencing token: greater than that of every earlier grant of this resource. */
  readonly token: number;
  readonly ttlMs: number;
  readonly heartbeatIntervalMs: number;
  readonly acquiredAt: number;
  readonly expiresAt: number;
  readonly nextHeartbeatAt: number;
  /** How many attempts to renew have failed since the last one that succeeded. */
  readonly renewAttempt: number;
  /** Aborts when the lease ends, however it ends; its reason is a ProjectLockError unless released. */
  readonly signal: AbortSignal;
  /** Releases the lease. Releasing a lease that has ended already is no error. */
  release(): Promise<void>;
  /** Releases it at the end of the block: `await using lease = …`. Engines that lack the symbol get it. */
  [Symbol.asyncDispose](): Promise<void>;
}

export interface WithLockOptions extends AcquireOptions {
  /** false: if the executor fails, it keeps the lease, which is renewed until the executor releases it. */
  releaseOnError?: boolean; // default true
}

/** Why the page may no longer write. */
export type ReadonlyReason = "acquire-failed" | "renew-failed" | "release-failed" | "lease-lost" | "runtime-crashed";
/** Conditions that need attention although the lease continues. */
export type Warning = "fallback-engaged" | "fallback-degraded" | "heartbeat-delayed"
  | "self-wait"; // this page itself holds the lock that it waits for, outside any `within` chain

interface EventBase {
  readonly at: number;
  readonly ownerId: string;
  readonly resource: string;
  /**
   * The lease of the event, from the first attempt to acquire it. Absent when all leases ended at once: the runtime
   * crashed, or the page entered the back/forward cache.
   */
  readonly leaseId?: string;
}
/**
 * The events, in this order: `lock:attempt`, then (`lock:error`, `lock:waiting`, `lock:attempt`)* while another owner
 * holds the lock, `lock:acquired`, `lock:renew-scheduled`, then (`lock:renewed`, `lock:renew-scheduled`)*, then
 * `lock:release-requested`, `lock:released`. A final failure is a `lock:error` followed by `lock:readonly-entered`,
 * once per lease or failed acquisition.
 */
export type ProjectLockEvent = EventBase & (
  | { type: "lock:attempt"; strategy: Strategy; retry: number }
  | { type: "lock:waiting"; retry: number; delayMs: number }
  | { type: "lock:acquired"; lease: ProjectLockLease }
  | { type: "lock:renew-scheduled"; lease: ProjectLockLease; nextHeartbeatInMs: number }
  | { type: "lock:renewed"; lease: ProjectLockLease }
  | { type: "lock:warning"; warning: Warning; lease?: ProjectLockLease; detail?: string }
  | { type: "lock:fallback-engaged"; lease: ProjectLockLease }
  | { type: "lock:handover-requested"; lease: ProjectLockLease; from: string;
      /** Refuses, as does `preventDefault` of the CustomEvent. The page that asks receives `why`. */
      refuse(why?: string): void;
      /**
       * Delays the answer until the promise settles; a rejection refuses. Three seconds after the event, no answer
       * means consent.
       */
      waitUntil(promise: PromiseLike<unknown>): void }
  | { type: "lock:release-requested"; lease: ProjectLockLease }
  | { type: "lock:released"; leaseId: string }
  | { type: "lock:error"; operation: Operation; error: ProjectLockError; retryable: boolean }
  | { type: "lock:readonly-entered"; reason: ReadonlyReason; lastError: ProjectLockError; retryable: false }
);

/** The LockManager interface of the Web Locks API, served by the strategy that is in use. If the browser has Web Locks, its names are
 *  those of `navigator.locks`, in the whole origin. */
export interface LockManagerLike {
  request<T>(name: string, callback: (lock: { name: string; mode: LockMode } | null) => T | Promise<T>): Promise<T>;
  request<T>(name: string, options: { mode?: LockMode; ifAvailable?: boolean; steal?: boolean; signal?: AbortSignal },
             callback: (lock: { name: string; mode: LockMode } | null) => T | Promise<T>): Promise<T>;
  query(): Promise<{ held: LockInfo[]; pending: LockInfo[] }>;
}
export interface LockInfo { name: string; mode: LockMode; clientId: string }

/**
 * A holder. If it does not answer, as in a frozen tab, only resource, mode and strategy are known, and `ownerId` is the
 * browser's client id.
 */
export interface HolderInfo {
  resource: string; mode: LockMode; strategy: Strategy; ownerId: string; ownerName?: string;
  leaseId?: string; token?: number; since?: number; expiresAt?: number;
  paths?: string[][]; slots?: number; slot?: number; within?: string;
}
/** A waiter, and the ownerIds of the holders of the lock that it waits for next. `leaseId` is that of the lease to come. */
export interface WaiterInfo {
  resource: string; mode: LockMode; ownerId: string; since: number; waitsFor: string[];
  ownerName?: string; leaseId?: string; paths?: string[][]; slots?: number; within?: string;
}

// ---- AutoSave ------------------------------------------------------------------------------------

/** The content to save: a string as UTF-8, an ArrayBuffer, a view of one or a Blob as its bytes, any other object as JSON.
 *  Refused with "snapshot-failed": a string with a lone surrogate, and what JSON would leave empty, such as a Map. */
export type Snapshot = string | ArrayBuffer | ArrayBufferView | Blob | object;
export type AutoSavePhase =
  | "disabled" | "idle" | "debouncing" | "awaiting-lock" | "writing-current" | "updating-index" | "gc"
  | "readonly" | "error";

export interface AutoSaveOptions {
  /** Ends the AutoSave as dispose() does, also before it is ready. */
  signal?: AbortSignal;
  /** The document of the project: it has a lock, a content, a history and drafts of its own. Default []: the
   *  project itself. With `lock.path` it must say the same; `lock.paths`, `lock.slots` and mode "shared" are invalid here. */
  path?: string[];
  /** Called if a draft and the saved content have both changed since their common base. Its result is saved;
   *  undefined leaves the conflict to the user (autosave:conflict), and so does a promise that takes more than five seconds.
   *  It must not await another call of this AutoSave, because that call waits for the merge. */
  merge?: (sides: Conflict) => Snapshot | undefined | Promise<Snapshot | undefined>;
  /** How long typed text may exist in memory only: the pause between two writes of the journal. Default 200; grows with the cost of the
   *  snapshot, so that journalling takes at most 5 % of the page's main thread. 0 switches the journal off. */
  journalMs?: number;
  enabled?: boolean;       // default true; false: phase "disabled", nothing is ever written
  debounceMs?: number;     // default 500
  idleMs?: number;         // default 2000: the longest a change waits while the user keeps typing
  /** The rule by which generations are kept. "spread" (default): the newest one, and older ones at growing distances in time, so that the
   *  same number covers weeks. "latest": the newest ones. */
  keep?: "spread" | "latest";
  maxGenerations?: number; // default 20; pinned ones are not counted
  maxBytes?: number;       // default 52428800, over all generations that are not pinned; with keep "latest" the oldest go first
  lock?: AcquireOptions;
  standby?: boolean;       // default true: a read-only page becomes the editor when the holder leaves
}
export interface AutoSaveState {
  phase: AutoSavePhase; lastSuccessAt?: number; pendingBytes: number; lastError?: Error & { code: string };
  retryCount: number; queuedGeneration?: number; holder?: HolderInfo;
  /** The place of the content: "indexeddb" where the page may not use OPFS, as in WebKitGTK and in private windows of Firefox. */
  storage: "opfs" | "indexeddb" | "server";
  /** With a server: whether it answered last. */
  online?: boolean;
  /** Number of drafts of this document that wait for a decision, as far as this page knows. */
  drafts: number;
}
export interface Generation {
  id: string; savedAt: number; bytes: number; token: number; sha256: string; current: boolean;
  /** Of a pinned generation: it is never removed to make room, and does not count towards maxGenerations or maxBytes. */
  name?: string;
  ownerName?: string; // of the page that saved it
}

/**
 * Text of a page that is not in the saved content: the page was closed, crashed, lost the lock, or was disconnected
 * from the server. It is stored in this browser as soon as that happens (while typing, every journalMs) and stays until
 * it is resolved. A draft whose base is still the saved content becomes the content when the next editor begins.
 */
export interface Draft {
  /** read(id) returns its bytes. */
  id: string;
  path: string[];
  /** The page that typed it. */
  ownerId: string; ownerName?: string;
  at: number; bytes: number;
  /** Id of the generation on which it was typed; absent: an empty document. */
  base?: string;
  cause: "closed" | "crashed" | "lock-lost" | "offline" | "save-failed";
}
/** Both sides have changed since `base`, which is absent if it is no longer kept. */
export interface Conflict { draft: Draft; base?: Uint8Array; mine: Uint8Array; theirs: Uint8Array }

/**
 * Errors of saving. Errors of the lock layer itself ("unsupported", "aborted", "invalid-argument", "runtime-crashed")
 * come as a ProjectLockError.
 */
export type AutoSaveErrorCode =
  | "write-failed"     //  save, retryable: nothing was committed; AutoSave tries again
  | "quota-exceeded"   //  save, retryable: no space; earlier saved content stays
  | "storage-evicted"  //  save, retryable: the browser has emptied the storage; open text is saved again
  | "read-failed"      //  read, retryable: the storage could not be read
  | "data-corrupted"   //  read, final: this generation's content is damaged; the others stay readable
  | "stale-token"      //  save, final: a later editor has saved; its content is not overwritten
  | "not-found"        //  read, final: there is no such generation, or it is no longer kept
  | "snapshot-failed"  //  save, retryable: the page could not return its content
  | "read-only"        //  save, retryable: this page may not write now; its text is kept and offered again
  | "disabled"         //  save, final: AutoSave is switched off
  | "disposed"         //  save, final: AutoSave has ended
  | "handover-refused" //  edit, retryable: the page that edits refused, or cannot save
  | "handover-busy"    //  edit, retryable: another page has asked before, or takes it over at this moment
  | "not-allowed"      //  any operation, final: the server does not know the user, or the user may not do this; the page is read-only, and what is not saved is a draft
  | "handover-timeout"; // edit, retryable: the page that edits does not answer; force steals the lock

/** A failure of AutoSave. The message says what failed and what can be done. */
export class AutoSaveError extends Error {
  readonly name: "AutoSaveError";
  readonly code: AutoSaveErrorCode;
  readonly retryable: boolean;
  /** Of "data-corrupted" and "not-found". */
  readonly generation?: string;
}

/** Detail of `autosave:readonly`: this page may no longer write, or not yet. Dispatched once each time. */
export interface AutoSaveReadonly {
  readonly reason: ReadonlyReason;
  readonly error?: Error & { code: string };
  /** The page that edits, if it is known by then; otherwise `state()` names it later. */
  readonly holder?: HolderInfo;
  /** Unsaved text of this page. The page offers it to the user, who may use it. */
  readonly unsaved?: Uint8Array;
}
/** Detail of `autosave:editable`: this page may write. It comes while the Wasm is still loading if it is certain that no other page edits,
 *  no draft waits and no server takes part. The page holds the lock from then on. Its text is a draft until the runtime saves it. */
export interface AutoSaveEditable {
  /** The last saved content of any page, which this page loads before the user may type. Absent if the page shows it already, or nothing was ever saved.
   *  Text that is typed before the page gets this event never replaces it: that text becomes a draft, and `flushNow()` and `dispose()` reject with "read-only".
   *  A page that lost the lock with unsaved text and now shows another text gets its own text again, which is saved next. */
  readonly content?: Uint8Array;
  /** Text of this page that is not in `content`; it is a draft as well until something has been saved. */
  readonly unsaved?: Uint8Array;
  /** Drafts of this document that wait for a decision. */
  readonly drafts: readonly Draft[];
  /** Keeps the page read-only until the promise settles, at most five seconds: the editor is loading the content. */
  waitUntil(promise: PromiseLike<unknown>): void;
}
/** Detail of `autosave:preview`: the page shows the content read-only. `autosave:editable` gives it the content to edit. */
export interface AutoSavePreview {
  /** The content that was saved last, as far as this browser knows. */
  readonly content: Uint8Array;
  /** Whether a lock of this browser keeps the page from editing at this moment; after a reload, that may be the lock of the previous page.
   *  Absent where the browser does not know: without Web Locks, and with a server. */
  readonly held?: boolean;
}
/** The events of an AutoSave. A listener that is added after the last `autosave:editable` or `autosave:readonly` gets
 *  that event once, in a task of its own. The event has no `content` if something was typed since. */
export interface AutoSaveEventMap {
  /** The content that this browser knows, while the runtime is loading or the server cannot be reached. At most once, and
   *  before `autosave:editable`. Only for listeners that are added in the task that creates the AutoSave; not if something was typed before. */
  "autosave:preview": CustomEvent<AutoSavePreview>;
  /** A draft was stored, or found. */
  "autosave:draft": CustomEvent<Draft>;
  /** A draft and the saved content have both changed, and `merge` was absent, returned undefined or failed. */
  "autosave:conflict": CustomEvent<Conflict>;
  "autosave:phase": CustomEvent<AutoSaveState>;
  "autosave:saved": CustomEvent<Generation>;
  "autosave:readonly": CustomEvent<AutoSaveReadonly>;
  "autosave:editable": CustomEvent<AutoSaveEditable>;
}

/**
 * A text that saves itself. Its methods reject with an AutoSaveError or a ProjectLockError. When the page is hidden,
 * closed or enters the back/forward cache, it saves by itself. A page that returns from that cache is read-only until it has
 * the lock again.
 */
export interface AutoSave extends EventTarget {
  /** Fulfilled once it is known whether this page edits. */
  readonly ready: Promise<void>;
  /** Whether this page may not write. */
  readonly readOnly: boolean;
  /** While editing, once the runtime runs; give it as `within` to lock more of the project under it. */
  readonly lease?: ProjectLockLease;
  /** The same object until something changes, so that it serves useSyncExternalStore together with subscribe. */
  state(): AutoSaveState;
  /** Calls the listener after every change of state(), until the returned function is called. */
  subscribe(listener: () => void): () => void;
  /** Reports a change. Costs next to nothing: call it at every keystroke. */
  markDirty(): void;
  /**
   * Takes the snapshot before it returns. Resolves when the snapshot is durable; rejects if it cannot be saved
   * (read-only included).
   */
  flushNow(): Promise<Generation>;
  /** All generations, the current one first. */
  history(): Promise<Generation[]>;
  /** Drafts of this document, the newest first. */
  drafts(): Promise<Draft[]>;
  /** "content": the saved content becomes a generation and the draft becomes the content; rejects with "read-only" if this page lost the lock
   *  during the call, because another content may be saved. "generation": the draft is kept in the history. "discard": it is removed; rejects
   *  with "not-found" if this page makes it the content at that moment, or if it has more text than this page knew. */
  resolveDraft(id: string, as: "content" | "generation" | "discard"): Promise<void>;
  /** The content of a generation or a draft, verified. Rejects with "data-corrupted", "not-found", "read-failed". */
  read(id: "current" | string): Promise<Uint8Array>;
  /**
   * Names a generation and keeps it. An empty name removes the pin. Only the page that edits may pin; with a server,
   * pins belong to this browser.
   */
  pin(id: "current" | string, name: string): Promise<Generation>;
  /**
   * Backs up the present content, then makes generation `id` current and returns it. An editor that loads it asynchronously does
   * so in `load`: until that settles, at most five seconds, the page is read-only and nothing is saved, so `load` must not await another
   * call of this AutoSave. Rejects with "read-only" if this page lost the lock during the call.
   */
  restore(id: string, load?: (content: Uint8Array) => unknown): Promise<Uint8Array>;
  /**
   * From read-only back to editing: asks the holder to save and hand over; with force, steals the lock after graceMs (default
   * 5000) from a holder that does not answer, never from a holder that refuses. Pages that edit a document around or below this one
   * are asked in the same way. Rejects with "handover-refused", "handover-busy", "handover-timeout" or "aborted".
   */
  requestEdit(options?: { force?: boolean; graceMs?: number; signal?: AbortSignal }): Promise<void>;
  /**
   * Takes the snapshot before it returns, if there are changes; saves it, then releases. Text that cannot be saved
   * becomes a draft, and the promise rejects with the reason.
   */
  dispose(): Promise<void>;
  /** Disposes of it at the end of the block: `await using autosave = …`. */
  [Symbol.asyncDispose](): Promise<void>;
  addEventListener<K extends keyof AutoSaveEventMap>(type: K, listener: (event: AutoSaveEventMap[K]) => void, options?: boolean | AddEventListenerOptions): void;
  addEventListener(type: string, listener: EventListenerOrEventListenerObject | null, options?: boolean | AddEventListenerOptions): void;
}

// ---- Services ------------------------------------------------------------------------------------

/** The time in which one tab runs a service without a break: from the grant of its lock to the end of its lease. */
export interface ServiceTerm {
  /** Greater than the token of every earlier term: give it to a store that refuses older writers. */
  readonly token: number;
  /**
   * Aborts when the term ends: the lease is lost or expires, the service or the Holdfast is closed, or the page ends or goes into the
   * back/forward cache. End at once what `start` has begun, because the next tab starts the service.
   */
  readonly signal: AbortSignal;
}

/** Events of a service in this tab. */
export interface ServiceEventMap {
  "service:term": CustomEvent<{ token: number }>;   // this tab serves from now on
  "service:failed": CustomEvent<{ error: unknown }>; // `start` has failed here; it is tried again
}

/**
 * A service that runs in one tab. Arguments and results are structured clones, made when the call is made; ports and streams among them are moved
 * where the browser has shared workers.
 */
export interface Service<H> extends EventTarget {
  /** Whether this tab runs it. */
  readonly serving: boolean;
  /** The token of the term that answered last. */
  readonly token?: number;
  /**
   * Calls a function of the service in the tab that runs it. The calls of one tab are accepted in their order. Rejects with what the function
   * throws (name, message and code are kept); with "call-lost" if that tab ended after it had accepted the call, or may have; with
   * "invalid-argument" if there is no such function or an argument cannot be cloned; with "aborted" after close(); with the error of `start` after
   * three attempts to start have failed in a row.
   */
  call<K extends keyof H>(method: K, ...args: H[K] extends (...args: infer A) => unknown ? A : never): Promise<H[K] extends (...args: never[]) => infer R ? Awaited<R> : never>;
  /**
   * Ends it in this tab: calls that wait reject with "aborted". A tab that serves accepts nothing more, answers what it has accepted, within
   * a second, and lets the next tab serve.
   */
  close(): Promise<void>;
  addEventListener<K extends keyof ServiceEventMap>(type: K, listener: (event: ServiceEventMap[K]) => void, options?: boolean | AddEventListenerOptions): void;
  addEventListener(type: string, listener: EventListenerOrEventListenerObject | null, options?: boolean | AddEventListenerOptions): void;
}

// ---- Opening -------------------------------------------------------------------------------------

/** Options of openHoldfast. Invalid options reject with "invalid-argument" and their name. */
export interface OpenOptions {
  /** Closes it as close() does, also before it is ready. */
  signal?: AbortSignal;
  baseURL?: string | URL;          // the folder of holdfast.wasm and the worker, perhaps on another origin; default: the folder of the module
  wasmURL?: string | URL;          // the URL of this file alone, for bundlers that rename assets; so does workerURL
  workerURL?: string | URL;
  /**
   * The thread in which the Go runtime runs; default "worker". Workers can open a Holdfast too. In a shared worker or a service worker, which
   * cannot start a worker in every browser, the runtime lives in that worker itself, over Web Locks; a service worker imports
   * `holdfast-page.js` beside `holdfast.js`.
   */
  host?: "worker" | "page";
  strategy?: "auto" | "web-lock" | "file-lock"; // default "auto": Web Locks, else OPFS; pages of different strategies exclude each other
  root?: string;                   // default "project": the OPFS folder that holds `.lock` and everything else
  ownerName?: string;              // the name that other tabs show
  /**
   * A Holdfast server. Leases are then valid on this machine and on the server, and AutoSave saves there; `locks` stays
   * on this machine. If the server does not answer, the acquisition tries again until its time limit ("acquire-timeout", retryable). `steal`
   * steals from tabs of this browser only. `ownerName` has at most 64 characters.
   */
  server?: {
    url: string | URL;
    /**
     * Returns the user's bearer token. It is called before the first request and again when the server refuses the last token, never
     * twice at a time. If it throws or does not settle, calls fail as if the server did not answer; an empty text is "not-allowed".
     */
    token?: () => string | Promise<string>;
  };
}

/** One open runtime. Dispatches every ProjectLockEvent as a CustomEvent of that type, the event in `detail`. */
export interface Holdfast extends EventTarget {
  /** Random, new for every `openHoldfast`. */
  readonly ownerId: string;
  readonly version: string;
  /** Fulfilled when the runtime runs; rejected with a ProjectLockError that says why it cannot. Calls made before wait for it. */
  readonly ready: Promise<void>;
  /**
   * Acquires the project's lease and renews it until it is released, lost or stale. Its events are dispatched before it
   * settles. Rejects with "acquire-denied" (`ifAvailable`), "acquire-timeout" (time or retries spent), "aborted",
   * "lease-lost" (the page entered the back/forward cache meanwhile), "web-lock-unsupported" or "unsupported" (the message says why),
   * "invalid-argument", "runtime-crashed".
   */
  acquireProjectLock(options?: AcquireOptions): Promise<ProjectLockLease>;
  /**
   * Renews now instead of at the next heartbeat. Rejects with "lease-stale" or "lease-lost" if the lease has ended, and
   * with "renew-failed" if the heartbeat will try again.
   */
  renewProjectLock(lease: ProjectLockLease): Promise<ProjectLockLease>;
  /** Releases the lease. Rejects with "release-failed" if its record could not be removed, unless `force` is set. */
  releaseProjectLock(lease: ProjectLockLease, options?: { force?: boolean }): Promise<void>;
  /**
   * Runs the executor under a lease, which is renewed while the executor runs and released afterwards in any case.
   * Rejects with the executor's error, or with "lease-lost" or "lease-stale" as soon as the lease ends; `lease.signal`
   * reports that to the executor.
   */
  withProjectLock<T>(executor: (lease: ProjectLockLease) => T | Promise<T>, options?: WithLockOptions): Promise<T>;
  /**
   * Calls the listener with every event, in order, until the returned function is called. An exception of the listener
   * goes to the page's error event and changes nothing else.
   */
  subscribe(listener: (event: ProjectLockEvent) => void): () => void;
  /**
   * Saves the text that the page edits, automatically, under the project's lock. Fulfilled once it is known whether
   * this page edits: a page that may not is read-only and stands by. Then the first event comes, in a task
   * of its own: `autosave:editable` with the last saved content, or `autosave:readonly` with the page that edits.
   *
   * The snapshot is taken when it is written, not when it was marked. A string is saved as UTF-8, an object as JSON.
   * Rejects with "unsupported" if files cannot be stored (the message says why), "invalid-argument", "aborted",
   * "runtime-crashed".
   */
  initAutoSave(snapshot: () => Snapshot | Promise<Snapshot>, options?: AutoSaveOptions): Promise<AutoSave>;
  /** Returns at once. `ready` settles when it is known whether this page edits; `ready` rejects as initAutoSave does. Calls made
   *  before wait for it. Text that is marked before is kept: it is saved if no content was saved before, and becomes a draft otherwise. A call of
   *  `dispose()` before it is ready ends it cleanly: `ready` rejects with "aborted", unless marked text is to be saved first. */
  createAutoSave(snapshot: () => Snapshot | Promise<Snapshot>, options?: AutoSaveOptions): AutoSave;
  /**
   * One tab of the origin runs the service, and every tab calls it: make the same call in all of them, with the same `root`. The holder of a
   * lock calls `start` and answers calls with the functions that it returns. When that tab ends, or is frozen for fifteen seconds, the next tab
   * starts the service again. Calls that were not accepted yet are made again there; a call that was accepted and not answered rejects with
   * "call-lost". `start` may take 30 s. A server takes no part.
   */
  serve<H extends Record<keyof H, (...args: never[]) => unknown>>(name: string, start: (term: ServiceTerm) => H | Promise<H>): Service<H>;
  readonly locks: LockManagerLike;
  /** All holders and waiters, in all tabs of the origin, in the order of time. */
  inspect(): Promise<{ held: HolderInfo[]; pending: WaiterInfo[] }>;
  /** Takes the snapshots of its AutoSaves before it returns, saves them, ends pending acquisitions with "aborted", releases
   *  everything and stops the runtime. Text that cannot be saved becomes a draft, and the promise rejects with the reason. */
  close(): Promise<void>;
  /** Closes it at the end of the block: `await using holdfast = …`. */
  [Symbol.asyncDispose](): Promise<void>;
  addEventListener<K extends ProjectLockEvent["type"]>(type: K, listener: (event: CustomEvent<Extract<ProjectLockEvent, { type: K }>>) => void, options?: boolean | AddEventListenerOptions): void;
  addEventListener(type: string, listener: EventListenerOrEventListenerObject | null, options?: boolean | AddEventListenerOptions): void;
}

/**
 * Opens a Holdfast. Fulfilled as soon as the options are checked; calls wait until the runtime is loaded, within
 * their own `timeoutMs` and `signal`. Needs `script-src 'self' 'wasm-unsafe-eval'` and `worker-src 'self'` where
 * there is a content security policy.
 */
export function openHoldfast(options?: OpenOptions): Promise<Holdfast>;

/** Returns at once, or throws "invalid-argument". `ready` settles when it runs; calls made before wait for it. On a server (Node.js, server-side
 *  rendering) it does nothing, and `ready` rejects with "unsupported"; `openHoldfast` rejects with it there. */
export function createHoldfast(options?: OpenOptions): Holdfast;

/**
 * Fetches and compiles what `openHoldfast` will need, and starts the worker, which runs nothing yet. A Holdfast that is opened
 * with the same options uses them. Rejects with "load-failed" if a file could not be fetched within 30 s; calling again tries
 * again. Rejects with "unsupported" on a server and where no Wasm may run.
 */
export function preloadHoldfast(options?: Pick<OpenOptions, "baseURL" | "wasmURL" | "workerURL" | "host">): Promise<void>;
