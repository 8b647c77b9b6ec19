// Tests of applications without a browser: in Node.js, with jsdom, or with happy-dom. The tabs run the same program as pages, with
// locks, files and channels that live in memory. Nothing leaves the process, and no time passes unless the test moves it.

import type { Holdfast, OpenOptions } from "./holdfast.js";

export interface TestOptions {
  /** Unix milliseconds at which the test begins. Default: 2026-01-01. */
  now?: number;
}

/** A page with a worker of its own. All tabs of a test are of one origin and share locks and files. */
export interface TestTab {
  readonly holdfast: Holdfast;
  /** The page becomes hidden, or visible again. */
  hide(): void;
  show(): void;
  /** Nothing of the tab runs until `resume`, as in a computer that sleeps. Time moves on for the others. */
  suspend(): void;
  resume(): void;
  /** The user goes to another page, and this one enters the back/forward cache: the page gets `pagehide`, and nothing of it runs until `restore`. */
  cache(): void;
  restore(): void;
  /** The user closes the tab: the page gets `pagehide` and ends. */
  leave(): void;
  /** The process of the tab dies. The page gets no event. */
  crash(): void;
}

/** Failures on request. Each lasts until the test ends it. */
export interface TestFaults {
  /** Suspends the tab for longer than its leases live, and resumes it. Default: 120000. */
  expire(tab: TestTab, ms?: number): Promise<void>;
  /** Steals the lock of a project from its holder, and keeps it until the returned function is called. Default: "project". */
  steal(root?: string): Promise<() => void>;
  /** The next `count` writes to files fail. */
  failWrites(count: number): void;
  /** Opening a file takes `ms` milliseconds. */
  delayFiles(ms: number): void;
  /** The storage has room for `room` more bytes. Default: none. Infinity ends this. */
  fillStorage(room?: number): void;
  /** The browser removes all files. */
  emptyStorage(): void;
  /** No request reaches a server; `false` ends this. */
  cutServer(cut?: boolean): void;
}

export interface TestHoldfast {
  /** The time of the test, in Unix milliseconds. */
  readonly now: number;
  readonly faults: TestFaults;
  /** Opens a page with a Holdfast. */
  tab(options?: OpenOptions): TestTab;
  /** Moves the time. Timers that become due run in their order, each with all its consequences. */
  advance(ms: number): Promise<void>;
  /** Runs all tasks that need no time. */
  settle(): Promise<void>;
  /** Moves the time until the promise settles, and returns its result. Throws if `limitMs` is not enough. Default: 600000. */
  until<T>(promise: PromiseLike<T>, limitMs?: number): Promise<T>;
  /** Ends all tabs. */
  close(): void;
  [Symbol.dispose](): void;
}

/** A browser in memory. */
export function createTestHoldfast(options?: TestOptions): TestHoldfast;
