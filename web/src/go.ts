// Loads and runs the Go program, in a worker or in the page.

import "wasm_exec";
import { Port } from "../../jsbridge/port.js";
import type { Files } from "../../opfs/files.js";
import type { Journals } from "../../opfs/journal.js";
import type { Savings } from "../../opfs/savings.js";
import { withNames } from "./names";
import type { Config, Exports, Listener, RawEvent } from "./protocol";

/** The class that wasm_exec.js defines, with the parts that are used here. */
interface Go {
  env: Record<string, string>;
  importObject: WebAssembly.Imports;
  stopped?: boolean; // ours
  exit: (code: number) => void;
  run(instance: WebAssembly.Instance): Promise<void>;
  _resume(): void;
  _scheduledTimeouts: Map<number, ReturnType<typeof setTimeout>>;
}
declare const Go: new () => Go;

/** The services for the program: files opens files where handles are missing; savings saves; journals has the drafts. It ends with ended. */
interface Lent { files?: Files; savings: Pick<Savings, "expect" | "prepare" | "store" | "finish">; journals: Pick<Journals, "bind" | "list" | "read" | "remove">; ended?: AbortSignal }

/** Runs the program. When it has died, the locks it held are given back. */
export async function startGo(module: WebAssembly.Module, config: Config, listener: Listener, { files, savings, journals, ended }: Lent): Promise<Exports> {
  const go = new Go();
  let port: Port | undefined;
  const died = (why: string): void => {
    if (!stop(go)) return;
    port?.close();
    listener.died(why);
  };
  guard(go, died);
  const instance = await WebAssembly.instantiate(module, go.importObject);
  port = new Port();
  ended?.throwIfAborted();
  ended?.addEventListener("abort", () => stop(go) && port?.close()); // in a page nothing else ends it
  return new Promise((resolve, reject) => {
    const name = `holdfast ${crypto.getRandomValues(new Uint32Array(4)).join("-")}`;
    const globals = globalThis as unknown as Record<string, unknown>;
    const ready = (exports: Exports): void => {
      delete globals[name];
      resolve(withNames(exports));
    };
    const events = (all: string): void => (JSON.parse(all) as RawEvent[]).forEach(listener.event);
    globals[name] = { config, port, files, savings, journals, event: listener.event, events, ready };
    go.env = { HOLDFAST_BOOT: name };
    go.run(instance)
      .catch((error: unknown) => died(String(error)))
      .then(() => reject(new Error("the runtime ended while it started")));
  });
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
