// holdfast/testing: the same program as in a browser, in Node.js. A test has tabs, moves their time and asks for faults.

import { readFile } from "node:fs/promises";
import type * as Contract from "../../holdfast";
import type * as Testing from "../../testing";
import type { Owner } from "./clock";
import { pageGlobals, World } from "./realm";
import runTab from "./testing-tab.js";
import runWorker from "./testing-worker.js";

let compiled: Promise<WebAssembly.Module> | undefined;

/** The program is compiled once for a process. */
const program = (): Promise<WebAssembly.Module> =>
  compiled ??= readFile(new URL("./holdfast.wasm", import.meta.url)).then((bytes) => WebAssembly.compile(new Uint8Array(bytes)));

class Tab implements Testing.TestTab {
  readonly holdfast: Contract.Holdfast;
  readonly #world: World;
  readonly #owner: Owner = { alive: true, suspended: false };
  readonly #workers = new Set<Owner>();
  readonly #globals: Record<string, unknown>;

  constructor(world: World, options: Contract.OpenOptions | undefined) {
    this.#world = world;
    this.#globals = pageGlobals(world, this.#owner, this.#workers);
    this.holdfast = runTab(this.#globals).createHoldfast({ ...options, host: "worker" });
  }

  hide(): void { this.#show(true); }
  show(): void { this.#show(false); }

  #show(hidden: boolean): void {
    const document = this.#globals["document"] as EventTarget;
    Object.assign(document, { hidden, visibilityState: hidden ? "hidden" : "visible" });
    document.dispatchEvent(new Event("visibilitychange"));
  }

  suspend(): void { for (const one of [this.#owner, ...this.#workers]) one.suspended = true; }

  resume(): void {
    for (const one of [this.#owner, ...this.#workers]) one.suspended = false;
    this.#world.clock.task(this.#owner, () => undefined);
  }

  cache(): void {
    this.#tell("pagehide", true);
    this.suspend();
  }

  restore(): void {
    this.resume();
    this.#tell("pageshow", true);
  }

  leave(): void {
    this.#tell("pagehide", false);
    this.crash();
  }

  #tell(type: "pagehide" | "pageshow", persisted: boolean): void {
    (this.#globals["dispatchEvent"] as EventTarget["dispatchEvent"])(Object.assign(new Event(type), { persisted }));
  }

  crash(): void { for (const one of [...this.#workers, this.#owner]) this.#world.end(one); }
}

class TestHoldfast implements Testing.TestHoldfast {
  readonly #world: World;
  readonly #tabs: Tab[] = [];
  readonly faults: Testing.TestFaults;

  constructor(now: number) {
    const world = this.#world = new World(now, program, runWorker);
    const stealer: Owner = { alive: true, suspended: false };
    this.faults = {
      expire: async (tab, ms = 120_000) => {
        tab.suspend();
        await this.advance(ms);
        tab.resume();
        await this.settle();
      },
      steal: async (root = "project") => {
        let release = (): void => undefined;
        const held = new Promise<void>((done) => { release = done; });
        void world.locks.request(stealer, `holdfast:${root}`, { steal: true }, () => held);
        await this.settle();
        return release;
      },
      failWrites: (count) => { world.files.faults.failing = count; },
      delayFiles: (ms) => { world.files.faults.delayMs = ms; },
      fillStorage: (room = 0) => { world.files.faults.room = world.files.used + room; },
      emptyStorage: () => world.files.clear(),
      cutServer: (cut = true) => { world.online = !cut; },
    };
  }

  get now(): number { return this.#world.clock.wall; }

  tab(options?: Contract.OpenOptions): Tab {
    const tab = new Tab(this.#world, options);
    this.#tabs.push(tab);
    return tab;
  }

  advance(ms: number): Promise<void> { return this.#world.clock.advance(ms); }
  settle(): Promise<void> { return this.#world.clock.settle(); }

  async until<T>(promise: PromiseLike<T>, limitMs = 600_000): Promise<T> {
    const { clock } = this.#world, end = clock.now + limitMs;
    let over = false;
    const settled = Promise.resolve(promise).finally(() => { over = true; });
    settled.catch(() => undefined); // the caller gets it
    for (await clock.settle(); !over; await clock.settle()) {
      if (!clock.step(end)) throw new Error(`the promise has not settled in ${limitMs} ms of the test's time`);
    }
    return settled;
  }

  close(): void { for (const tab of this.#tabs) tab.crash(); }

  [Symbol.dispose](): void { this.close(); }
}

export function createTestHoldfast({ now = Date.UTC(2026, 0, 1) }: Testing.TestOptions = {}): Testing.TestHoldfast {
  return new TestHoldfast(now);
}
