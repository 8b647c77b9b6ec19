// Faults in a real page, for tests that drive a browser (Playwright, Puppeteer, chromedp). The test runs this script before the
// scripts of each page, and bypasses the page's Content Security Policy, because the script also runs in Holdfast's workers, from `blob:`.

/** Failures on request, in one page and its workers. A promise settles when they are in force. */
export interface PageFaults {
  /** Steals the Web Lock of a project from its holder, and keeps it until `release`. Default: "project". */
  steal(root?: string): Promise<void>;
  /** Releases the lock that `steal` took. */
  release(root?: string): void;
  /** The clocks of the page jump ahead, as in a computer that slept. The page notices at its next heartbeat or call.
   *  A page that edits before the runtime runs has no lease yet, which could expire. Default: 120000. */
  expire(ms?: number): Promise<void>;
  /** The next `count` writes to files or IndexedDB fail. 0 ends this. */
  failWrites(count: number): Promise<void>;
  /** Opening a file takes `ms` milliseconds. 0 ends this. */
  delayFiles(ms: number): Promise<void>;
  /** The storage has room for `room` more bytes. Default: none. Infinity ends this. */
  fillStorage(room?: number): Promise<void>;
  /** No request of the page or its workers reaches a server; `false` ends this. */
  cutServer(cut?: boolean): Promise<void>;
}

declare global {
  var holdfastFaults: PageFaults;
  /** A pattern for the URLs of the workers that get the faults. Default: URLs with "holdfast" in them. */
  var holdfastFaultyWorkers: RegExp | undefined;
}
