// The worker in which Go runs by default: its timers keep their pace in hidden tabs, and when it ends the browser
// releases everything it held.

import { Port } from "../../jsbridge/port.js";
import { Database } from "../../opfs/database.js";
import { Journals } from "../../opfs/journal.js";
import { SaveWriter } from "../../opfs/savewriter.js";
import { Tables } from "../../opfs/tables.js";
import { answerTurns, watchCalls } from "./calls";
import { type Open, startGo } from "./go";
import type { Loan } from "./lend";
import { lending } from "./lending";
import type { Callback, Exports, FromWorker, RawEvent, Reason, ToWorker } from "./protocol";

const scope = self as unknown as { postMessage(message: FromWorker, transfer: Transferable[]): void; onmessage: ((e: MessageEvent<ToWorker>) => void) | null };
/** Messages that the page gets together, because each one wakes it: events wait for the answer that Go gives with them. */
let waiting: FromWorker[] = [], buffers: ArrayBuffer[] = [];
const send = (): void => {
  const messages = waiting, moved = buffers;
  waiting = [];
  buffers = [];
  if (messages.length) scope.postMessage(messages.length > 1 ? { kind: "several", messages } : messages[0]!, moved);
};
const sendLater = (turns: number): void => turns ? queueMicrotask(() => sendLater(turns - 1)) : send();
const add = (message: FromWorker, value: unknown): number => {
  buffers.push(...buffersOf(value));
  return waiting.push(message);
};
const post = (message: FromWorker, value?: unknown): void => {
  add(message, value);
  send();
  returned();
};
/** watch.ts looks for these messages, so they go alone. */
const sendAlone = (message: FromWorker): void => {
  send();
  scope.postMessage(message, []);
};
const tell = (client: number, event: RawEvent): void => {
  if (add({ kind: "event", client, event }, event) === 1) sendLater(answerTurns);
};

declare const __TIME_STANDS_STILL__: boolean;
let program: Promise<Open> | undefined;
const clients = new Map<number, Promise<Exports>>();
const journals = new Journals();
// Where time stands still, no client lets others wait for a step that may follow.
const tables = __TIME_STANDS_STILL__ ? new Tables(undefined, undefined, 0) : new Tables();
const port = new Port();
/**
 * The page holds locks for Go, and reports about each: it was stolen, it is released, it was looked at. These functions resolve the promises
 * for the reports, by the kind of the report and the lock's number.
 */
const news = new Map<string, (reason: unknown) => void>();
const aborts = new Map<number, AbortController>();
const callbacks = new Map<number, { resolve: () => void; reject: (reason: unknown) => void }>();
let lastCallback = 0;

const returned = watchCalls((bytes) => sendAlone({ kind: "file call", bytes }), () => post({ kind: "pong" }));
const end = self.close.bind(self);
self.close = () => {
  sendAlone({ kind: "ended" });
  end();
};

scope.onmessage = ({ data }) => {
  switch (data.kind) {
    case "start": {
      const { client, module, config } = data;
      program ??= startGo(module, (why) => post({ kind: "died", why: String(why) }), port, { tables, writer: new SaveWriter(), journals, database: new Database() });
      const exports = program.then((open) => open(config, (event) => tell(client, event)));
      clients.set(client, exports);
      exports.then(() => post({ kind: "ready", client }), ({ message }: Error) => post({ kind: "died", why: message }));
      break;
    }
    case "call":
      void call(data);
      break;
    case "hidden":
      tables.keep(!data.hidden);
      break;
    case "ping":
      post({ kind: "pong" });
      break;
    case "lent":
      news.get(data.news + data.number)?.(new DOMException("the lock was stolen", "AbortError"));
      news.delete(data.news + data.number);
      break;
    case "journal":
      void journal(data);
      break;
    case "abort":
      aborts.get(data.id)?.abort();
      break;
    case "returned": {
      const waiting = callbacks.get(data.callback);
      callbacks.delete(data.callback);
      if (data.failed) waiting?.reject(new Error("the function of the page failed"));
      else waiting?.resolve();
    }
  }
};

async function call({ client, id, method, arg, aborted, callback }: ToWorker & { kind: "call" }): Promise<void> {
  let controller: AbortController | undefined;
  if (aborted !== undefined) aborts.set(id, (controller = new AbortController()));
  if (aborted) controller?.abort(); // before the call: with a later message, Go would already wait
  try {
    const exports = await clients.get(client)!;
    const value = await lending(port, borrowed(arg), (own) => exports[method](own, controller?.signal, callback ? inPage(id) : undefined));
    post({ kind: "result", id, value }, value);
  } catch (reason) {
    post({ kind: "error", id, reason: reason as Reason });
  } finally {
    aborts.delete(id);
  }
}

/** An argument whose locks, if there are any, can be released and lost. */
function borrowed(arg: unknown): unknown {
  const { lent } = { ...(arg as { lent?: Loan }) };
  if (!lent) return arg;
  const { number } = lent;
  const told = (what: string): Promise<unknown> => new Promise((resolve) => news.set(what + number, resolve));
  const asks = (kind: "release" | "look") => (): Promise<unknown> => {
    const answer = told(kind);
    post({ kind, number });
    return answer;
  };
  return { ...(arg as object), lent: { ...lent, stolen: told("stolen"), release: asks("release"), look: asks("look") } };
}

/** Runs a request to the writer of drafts, without Go. */
async function journal({ id, method, args }: ToWorker & { kind: "journal" }): Promise<void> {
  try {
    post({ kind: "result", id, value: await (journals[method] as (...args: unknown[]) => Promise<unknown>).apply(journals, args) });
  } catch (reason) {
    post({ kind: "error", id, reason: reason as Reason });
  }
}

/** A function of the page, called over messages. */
function inPage(id: number): Callback {
  return (value) => new Promise((resolve, reject) => {
    const callback = ++lastCallback;
    callbacks.set(callback, { resolve, reject });
    post({ kind: "callback", id, callback, value });
  });
}

/** The buffers of a message that are transferred, not copied: the sender no longer needs them. */
function buffersOf(value: unknown): ArrayBuffer[] {
  const all = value instanceof Uint8Array ? [value] : Object.values({ ...(value as object) });
  return all.flatMap((field) => (field instanceof Uint8Array ? [field.buffer as ArrayBuffer] : []));
}
