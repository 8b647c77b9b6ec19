// The messages between the facade and the Go runtime. The Go side is wasm/exports_js.go.

import type { Journals } from "../../opfs/journal.js";

/** Settings for Go when it starts. */
export interface Config {
  ownerId: string;
  ownerName: string;
  root: string;
  strategy: string;
  server: string;
  browser: string | undefined; // an id of this browser, for the server
  token: boolean;   // whether the page has tokens for the server
}

/** The functions that Go exports. */
export type Method = "acquire" | "renew" | "release" | "with" | "request" | "query" | "inspect" | "close" | "open" | "answer"
  // of an AutoSave, wasm/autosave_js.go
  | "autosave" | "mark" | "flush" | "history" | "read" | "drafts" | "resolveDraft" | "pin" | "restore" | "edit" | "suspend" | "resume" | "dispose";

/** A function of the page that Go calls during a call. */
export type Callback = (value: unknown) => Promise<void>;

export type Exports = Record<Method,
  (arg?: unknown, signal?: AbortSignal, callback?: Callback) => Promise<unknown>>;

/** Go's description of an error; the facade makes a ProjectLockError of it. */
export interface Reason {
  code: string;
  operation: string;
  retryable: boolean;
  message: string;
  resource?: string;
}

/** The messages that a runtime sends to a Holdfast without a request. */
export interface Listener {
  event(event: RawEvent): void;
  /** The instance is dead and sends nothing more. If it did not die by itself, another one may replace it. */
  died: Died;
  /** The writer of drafts can be called. */
  writes?(journal: Host["journal"]): void;
  /** The page entered the back/forward cache, and a Holdfast of it held a lock: the instance has ended. */
  slept(): void;
}

/** Reports why a runtime died: an error of Holdfast, or a text. With `replace`, another one may replace it. */
export type Died = (why: unknown, replace?: boolean) => void;

/** A Go program that runs or loads. It serves each Holdfast of the page separately. */
export interface Runtime {
  /** Works before Go runs. */
  journal: Host["journal"];
  open(config: Config, event: Listener["event"]): Promise<Host>;
  /** Resolves when everything that `open` needs is loaded. */
  loaded(): Promise<unknown>;
}

/** Go's description of an event: leases and errors are plain objects. An event of an AutoSave contains its number. */
export type RawEvent = Record<string, unknown> & { type: string; leaseId?: string; saver?: number };

/** Page to worker. The first message starts Go. Each Holdfast has a number. `aborted` of a call is absent if the call has no signal. */
export type ToWorker =
  | { kind: "start"; client: number; module: WebAssembly.Module; config: Config }
  | { kind: "call"; client: number; id: number; method: Method; arg: unknown; aborted: boolean | undefined; callback: boolean }
  | { kind: "abort"; id: number }
  | { kind: "ping" }
  | { kind: "hidden"; hidden: boolean }          // of the page
  | { kind: "journal"; id: number; method: JournalMethod; args: unknown[] }
  | { kind: "lent"; number: number; news: "stolen" | "release" | "look" } // of locks that the page holds for Go
  | { kind: "returned"; callback: number; failed: boolean };

/** Worker to page. */
export type FromWorker =
  | { kind: "ready"; client: number }
  | { kind: "event"; client: number; event: RawEvent }
  | { kind: "several"; messages: FromWorker[] }  // events, and the message after them
  | { kind: "died"; why: string }
  | { kind: "ended" } | { kind: "pong" }         // see watch.ts
  | { kind: "file call"; bytes: number }         // see calls.ts
  | { kind: "release" | "look"; number: number } // locks that the page holds for Go, see lend.ts
  | { kind: "result"; id: number; value: unknown }
  | { kind: "error"; id: number; reason: Reason }
  | { kind: "callback"; id: number; callback: number; value: unknown };

/** Requests of a page to the writer of its drafts. Go takes no part. */
export type JournalMethod = "bind" | "write" | "seal" | "saved" | "release" | "merge";

/** A Go runtime in any thread, and the writer of drafts beside it. */
export interface Host {
  journal<M extends JournalMethod>(method: M, ...args: Parameters<Journals[M]>): ReturnType<Journals[M]>;
  call: Exports[Method] extends (...args: infer A) => infer R ? (method: Method, ...args: A) => R : never;
}
