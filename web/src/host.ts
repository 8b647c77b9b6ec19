// The connection of the facade to the worker in which Go runs. Only a page with the worker host loads this module.

import { callListener } from "./call-listener";
import { compile, type Fetching, notLoaded } from "./compile";
import type { Callback, Died, FromWorker, Host, Listener, Runtime, ToWorker } from "./protocol";
import { watchHidden } from "./hidden";
import type { Loan } from "./lend";
import { watch } from "./watch";

export { startForeign } from "./start-script";

interface Call {
  resolve: (value: unknown) => void;
  reject: (reason: unknown) => void;
  callback: Callback | undefined;
}

interface Client {
  event: Listener["event"];
  ready: () => void;
}

/** `broken` resolves with the message of the worker's first error. A script that did not load has none. */
export function startWorker(worker: Worker, url: URL | undefined, broken: Promise<string>, wasm: Fetching, died: Died, ended: AbortSignal): Runtime {
  let runs = false, serves = false;
  worker.addEventListener("message", () => { runs = true; }, { once: true });
  void broken.then((why) => died(runs ? why || "its worker failed and gave no reason" : notLoaded(`${url ?? `holdfast-worker.js beside ${wasm.url}`}`,
    why || "could not be loaded, or worker-src of the content security policy forbids it (a file of another origin needs blob: and that origin)"), runs && !serves));
  const module = compile(wasm);
  module.catch(died);
  const calls = new Map<number, Call>();
  const clients = new Map<number, Client>();
  const loans = new Map<number, Loan>();
  let lastId = 0;
  // The bytes of a call are not needed afterwards, so they need not be copied.
  const post = (message: ToWorker, arg?: unknown): void => {
    const bytes = (arg as { bytes?: Uint8Array } | undefined)?.bytes;
    worker.postMessage(message, bytes ? [bytes.buffer] : []);
    watched();
  };

  const answered = (id: number): Call | undefined => {
    const call = calls.get(id);
    calls.delete(id);
    return call;
  };

  /** The worker asks for the release of locks that came with a call. */
  const lends = (lent: Loan): void => {
    const { number, stolen } = lent;
    lent.given = true;
    loans.set(number, lent);
    void stolen.then(() => post({ kind: "lent", number, news: "stolen" }));
  };

  const journal = ((method, ...args) => new Promise<unknown>((resolve, reject) => {
    ended.throwIfAborted();
    calls.set(++lastId, { resolve, reject, callback: undefined });
    post({ kind: "journal", id: lastId, method, args });
  })) as Host["journal"];

  const host = (client: number): Host => ({
    journal,
    call: (method, arg, signal, callback) => new Promise((resolve, reject) => {
      const id = ++lastId, { lent } = { ...(arg as { lent?: Loan }) };
      const send = (arg: unknown): void => post({ kind: "call", client, id, method, arg, aborted: signal?.aborted, callback: callback !== undefined }, arg);
      try {
        send(arg);
      } catch { // it has functions, as a loan does, or a proxy, as an option from a framework may be
        send(JSON.parse(JSON.stringify(arg, (_, part: unknown) => typeof part === "function" ? null : part)));
      }
      if (lent) lends(lent); // unless the argument cannot be sent
      const abort = (): void => post({ kind: "abort", id });
      const settled = <T>(settle: (value: T) => void) => (value: T) => {
        signal?.removeEventListener("abort", abort);
        settle(value);
      };
      calls.set(id, { resolve: settled(resolve), reject: settled(reject), callback });
      watched(); // the message itself was posted before the worker owed an answer
      signal?.addEventListener("abort", abort);
    }),
  });

  ended.addEventListener("abort", () => { // a writer of drafts may be called before Go runs
    for (const { reject } of calls.values()) reject(ended.reason);
    for (const loan of loans.values()) void loan.release(); // nobody else will
  });
  watchHidden((hidden) => worker.postMessage({ kind: "hidden", hidden } satisfies ToWorker), ended);
  const watched = watch(worker, () => calls.size > 0, (why) => died(why, true), ended);
  const heard = (data: FromWorker): void => {
    switch (data.kind) {
      case "several": return data.messages.forEach((one) => callListener(() => heard(one))); // a function of the page may throw
      case "ready":
        serves = true;
        return clients.get(data.client)?.ready();
      case "event": return clients.get(data.client)?.event(data.event);
      case "died": return died(data.why);
      case "release":
      case "look":
        return void loans.get(data.number)?.[data.kind]().then(() => post({ kind: "lent", number: data.number, news: data.kind }));
      case "result": return answered(data.id)?.resolve(data.value);
      case "error": return answered(data.id)?.reject(data.reason);
      case "callback": {
        const returned = (failed: boolean) => () => post({ kind: "returned", callback: data.callback, failed });
        calls.get(data.id)?.callback?.(data.value).then(returned(false), returned(true));
      }
    }
  };
  worker.onmessage = ({ data }: MessageEvent<FromWorker>) => heard(data);
  return {
    journal,
    loaded: async () => {
      await module;
      const pong = new Promise((done) => worker.addEventListener("message", done, { once: true }));
      post({ kind: "ping" });
      return pong;
    },
    open: (config, event) => new Promise((resolve, reject) => {
      const client = ++lastId;
      clients.set(client, { event, ready: () => resolve(host(client)) });
      module.then((module) => post({ kind: "start", client, module, config })).catch(reject);
    }),
  };
}
