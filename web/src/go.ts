// Loads and runs the Go program, in a worker or in the page.

import "wasm_exec";
import type { Port } from "../../jsbridge/port.js";
import type { Database } from "../../opfs/database.js";
import type { Files } from "../../opfs/files.js";
import type { Journals } from "../../opfs/journal.js";
import type { SaveWriter } from "../../opfs/savewriter.js";
import type { Tables } from "../../opfs/tables.js";
import { callListener } from "./call-listener";
import { withNames } from "./names";
import type { Config, Died, Exports, Listener, Method, RawEvent, Reason } from "./protocol";

/** The class that wasm_exec.js defines, with the parts that are used here. */
interface Go {
  env: Record<string, string>;
  importObject: WebAssembly.Imports;
  stopped?: boolean; // set here, not by wasm_exec.js
  exit: (code: number) => void;
  run(instance: WebAssembly.Instance): Promise<void>;
  _resume(): void;
  _scheduledTimeouts: Map<number, ReturnType<typeof setTimeout>>;
}
declare const Go: new () => Go;

/**
 * The services for the program: files opens files if this thread cannot; tables has the file of locks; writer saves;
 * journals has the drafts; database stores for AutoSave where files are refused. ended ends the program.
 */
interface Services { files?: Files; tables: Pick<Tables, "swap">; writer: Pick<SaveWriter, "preopen" | "prepare" | "store" | "finish">; journals: Pick<Journals, "bind" | "list" | "read" | "remove">; database: Database; ended?: AbortSignal }

/** Serves one more Holdfast and reports its events. */
export type Open = (config: Config, event: Listener["event"]) => Promise<Exports>;

/**
 * Prepares the program, which runs from the first Holdfast until the last one is closed. When it dies, its locks are
 * released.
 */
export async function startGo(module: WebAssembly.Module, tell: Died, port: Port, { files, tables, writer, journals, database, ended }: Services): Promise<Open> {
  const go = new Go();
  const died = (why: string): void => {
    if (!stop(go)) return;
    port.close();
    tell(why);
  };
  guard(go, died);
  const instance = await WebAssembly.instantiate(module, go.importObject);
  ended?.throwIfAborted();
  ended?.addEventListener("abort", () => stop(go) && port.close()); // in a page nothing else ends it

  const served = new Set<Exports>(); // the Holdfasts that are not closed
  let turn: Promise<unknown> = Promise.resolve();
  const open: Open = (config, listener) => new Promise((resolve, reject) => {
    const event = (one: RawEvent): void => callListener(() => listener(one)); // in a page, a function of the page may throw
    const ready = (exports: Exports): void => {
      const own = withNames(withTexts(exports));
      served.add(own);
      resolve({ ...own, close: (...args) => {
        served.delete(own);
        return own.close(...args);
      } });
    };
    const events = (all: string, bytes?: object): void => (JSON.parse(all) as RawEvent[]).forEach((one) => event(Object.assign(one, bytes))); // bytes are fields too
    const boot = { config: spelled(config), port, files, tables, writer, journals, database, events, ready };
    const [one] = served;
    if (one) one.open(boot).catch(reject);
    else run(go, instance, boot, died).then(() => reject(new Error("the runtime ended while it started")), reject);
  });
  return (...asked) => {
    const opening = turn.then(() => open(...asked)); // one after the other: the first one runs the program
    turn = opening.catch(() => undefined);
    return opening;
  };
}

/** The exports of Go, for callers with objects: each crosses as one text. The calls of the last two contain more than JSON. */
const withTexts = ({ open, answer, ...exports }: Exports): Exports => ({
  ...Object.fromEntries(Object.entries(exports).map(([method, call]) => [method, (arg, ...rest) => call(spelled(arg as object | undefined), ...rest)] as [Method, typeof call])) as Exports,
  open, answer,
});

/** The JSON text of the fields of an argument. */
const spelled = (fields: object | undefined): string | undefined => fields
  && `{${Object.entries(fields).flatMap(([name, value]) => (value === undefined ? [] : `${JSON.stringify(name)}:${json(name, value)}`)).join()}}`;

/** The JSON text of a field. Go refuses null, which replaces what JSON would leave out. A toJSON of the page changes nothing. */
function json(name: string, value: unknown): string {
  try {
    return JSON.stringify(value, function (this: Record<string, unknown>, key) {
      const part = this[key];
      return ["function", "symbol", "bigint"].includes(typeof part) ? null : part;
    });
  } catch {
    const refusal: Reason = { code: "invalid-argument", operation: "acquire", retryable: false, message: `invalid-argument: ${name} must be plain data` };
    throw refusal;
  }
}

/** Runs the program until it ends. It finds its boot object by the name of a global. */
function run(go: Go, instance: WebAssembly.Instance, boot: object & { ready(exports: Exports): void }, died: (why: string) => void): Promise<void> {
  const name = `holdfast ${crypto.getRandomValues(new Uint32Array(4)).join("-")}`;
  const globals = globalThis as unknown as Record<string, unknown>;
  const { ready } = boot;
  globals[name] = { ...boot, ready: (exports: Exports) => {
    delete globals[name];
    ready(exports);
  } };
  go.env = { HOLDFAST_BOOT: name };
  return go.run(instance).catch((error: unknown) => died(String(error)));
}

/** Notices when the program dies, and makes late callbacks of a dead one harmless. */
function guard(go: Go, died: (why: string) => void): void {
  const resume = go._resume;
  go._resume = () => {
    if (go.stopped) return;
    try {
      resume.call(go);
    } catch (error) {
      died(String(error));
    }
  };
  go.exit = (code) => {
    if (code === 0) stop(go);
    else died(`the program ended with exit code ${code}`);
  };
}

/** Ends what the program left in the event loop. Returns whether it still ran. */
function stop(go: Go): boolean {
  if (go.stopped) return false;
  go.stopped = true;
  for (const timer of go._scheduledTimeouts.values()) clearTimeout(timer);
  go._scheduledTimeouts.clear();
  return true;
}
