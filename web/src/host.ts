// Starts the worker in which Go runs, and speaks with it.

import type { Callback, Config, FromWorker, Host, Listener, ToWorker } from "./protocol";
import { watch } from "./watch";

interface Call {
  resolve: (value: unknown) => void;
  reject: (reason: unknown) => void;
  callback: Callback | undefined;
}

export function startWorker(worker: Worker, module: Promise<WebAssembly.Module>, config: Config, listener: Listener, ended: AbortSignal): Promise<Host> {
  ended.addEventListener("abort", () => worker.terminate());
  const calls = new Map<number, Call>();
  let lastId = 0;
  let watched = (): void => undefined;
  // What a call brings as bytes nobody wants back: it need not be copied.
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

  const host: Host = {
    journal: (method, ...args) => new Promise<unknown>((resolve, reject) => {
      calls.set(++lastId, { resolve, reject, callback: undefined });
      post({ kind: "journal", id: lastId, method, args });
    }) as never,
    call: (method, arg, signal, callback) => new Promise((resolve, reject) => {
      const id = ++lastId;
      post({ kind: "call", id, method, arg, aborted: signal?.aborted, callback: callback !== undefined }, arg);
      const abort = (): void => post({ kind: "abort", id });
      const settled = <T>(settle: (value: T) => void) => (value: T) => {
        signal?.removeEventListener("abort", abort);
        settle(value);
      };
      calls.set(id, { resolve: settled(resolve), reject: settled(reject), callback });
      signal?.addEventListener("abort", abort);
    }),
  };

  return new Promise((resolve, reject) => {
    const died = (why: string, replace?: boolean): void => {
      reject(new Error(why));
      listener.died(why, replace);
    };
    watched = watch(worker, () => calls.size > 0, (why) => died(why, true), ended);
    worker.onmessage = ({ data }: MessageEvent<FromWorker>) => {
      switch (data.kind) {
        case "ready": return resolve(host);
        case "event": return listener.event(data.event);
        case "died": return died(data.why);
        case "result": return answered(data.id)?.resolve(data.value);
        case "error": return answered(data.id)?.reject(data.reason);
        case "callback": {
          const returned = (failed: boolean) => () => post({ kind: "returned", callback: data.callback, failed });
          calls.get(data.id)?.callback?.(data.value).then(returned(false), returned(true));
        }
      }
    };
    worker.onerror = (event) => {
      event.preventDefault();
      died(event.message || "the worker could not be loaded; is holdfast-worker.js there, and does the content security policy allow it (worker-src)?");
    };
    module.then((module) => post({ kind: "start", module, config })).catch(reject);
  });
}
