// One tab's use of the runtime: opens it, calls it, and keeps the State that the views show. Nothing outside this file
// calls Holdfast.

import type { AcquireOptions, Holdfast, OpenOptions, ProjectLockEvent, ProjectLockLease } from "./holdfast.js";
import { Presence } from "./presence.js";
import { apply, newState, type State } from "./state.js";

export interface SessionListener {
  changed(): void;
  event(event: ProjectLockEvent): void;
  /** A call failed without an event. */
  failed(error: unknown, operation: string): void;
}

export class Session {
  readonly presence = new Presence(() => this.#lookSoon());
  readonly #listener: SessionListener;
  state: State = newState();

  #holdfast: Holdfast | undefined;
  #unsubscribe: (() => void) | undefined;
  #turn: Promise<void> = Promise.resolve();
  #attempt: { controller: AbortController; done: Promise<void> } | undefined;
  #toldErrors = new WeakSet<object>();
  #toldCodes: string[] = [];
  #openedWith: OpenOptions = {};
  #looking = false;
  #lookAgain = false;

  constructor(listener: SessionListener) {
    this.#listener = listener;
  }

  /**
   * Ends the previous runtime and starts another one. Calls run one after the other, because two runtimes of one tab
   * would wait for each other's lock.
   */
  open(options: OpenOptions): Promise<void> {
    this.state.runtime = "opening"; // at once, so that no view shows the runtime that is about to end
    this.#listener.changed();
    this.#turn = this.#turn.then(() => this.#open(options));
    return this.#turn;
  }

  async #open(options: OpenOptions): Promise<void> {
    this.#openedWith = options;
    this.#attempt?.controller.abort();
    await this.#attempt?.done;
    await this.#close();
    this.state = newState();
    this.#listener.changed();
    try {
      // Imported on demand, so that the page can report a missing or broken module.
      const { openHoldfast } = await import("./holdfast.js");
      const holdfast = await openHoldfast(options);
      this.#holdfast = holdfast;
      this.#unsubscribe = holdfast.subscribe((event) => this.#receive(event));
      await holdfast.ready;
      this.state.ownerId = holdfast.ownerId;
      this.state.runtime = "open";
      this.presence.introduce(holdfast.ownerId, options.ownerName ?? "");
    } catch (error) {
      this.state.runtime = "failed";
      this.state.failure = error;
      await this.#close();
    }
    this.#listener.changed();
    await this.look();
  }

  async #close(): Promise<void> {
    const holdfast = this.#holdfast;
    this.#holdfast = undefined;
    try {
      await holdfast?.close();
    } catch {
      // A crashed runtime cannot be closed. The browser frees its locks with its worker.
    }
    // This comes last, so that the timeline still shows the release by close().
    this.#unsubscribe?.();
    this.#unsubscribe = undefined;
    this.presence.nudge();
  }

  /** A user that types a name and presses the button while a new runtime starts means the new runtime. */
  async acquire(options: AcquireOptions): Promise<void> {
    await this.#turn;
    await this.#acquire(options);
  }

  /** Stops waiting. */
  cancel(): void {
    this.#attempt?.controller.abort();
  }

  /** Steals the lock from its holder. Gives up this tab's place in the queue first. */
  async takeOver(options: AcquireOptions): Promise<void> {
    this.state.busy = "takeover";
    this.#listener.changed();
    try {
      this.#attempt?.controller.abort();
      await this.#attempt?.done;
      // A lock can only be stolen as a whole.
      await this.#acquire({ ...options, mode: "exclusive", steal: true });
    } finally {
      this.state.busy = undefined;
      this.#listener.changed();
    }
  }

  renew(): Promise<void> {
    return this.#during("renew", async (holdfast, lease) => void await holdfast.renewProjectLock(lease));
  }

  release(): Promise<void> {
    return this.#during("release", (holdfast, lease) => holdfast.releaseProjectLock(lease));
  }

  async #acquire(options: AcquireOptions): Promise<void> {
    if (this.state.readonly?.reason === "runtime-crashed") await this.open(this.#openedWith);
    const holdfast = this.#holdfast;
    if (!holdfast || this.state.lease || this.#attempt) return;
    const controller = new AbortController();
    this.#toldCodes = [];
    this.state.acquiringSince = Date.now();
    const done = holdfast.acquireProjectLock({ ...options, signal: controller.signal })
      .then(() => undefined, (error: unknown) => this.#tell(error, "acquire the lock"))
      .finally(() => {
        this.#attempt = undefined;
        this.state.acquiringSince = undefined;
        this.state.waiting = undefined;
        this.#listener.changed();
        this.#lookSoon();
      });
    this.#attempt = { controller, done };
    this.#listener.changed();
    await done;
  }

  async #during(
    operation: "renew" | "release", act: (holdfast: Holdfast, lease: ProjectLockLease) => Promise<void>,
  ): Promise<void> {
    const { lease } = this.state;
    if (!this.#holdfast || !lease || this.state.busy) return;
    this.state.busy = operation;
    this.#toldCodes = [];
    this.#listener.changed();
    try {
      await act(this.#holdfast, lease);
    } catch (error) {
      this.#tell(error, `${operation} the lock`);
    } finally {
      this.state.busy = undefined;
      this.#listener.changed();
    }
  }

  /** Shows a rejection only if no event has reported it: most arrive twice, as an event and as a rejection. */
  #tell(error: unknown, operation: string): void {
    const known = typeof error === "object" && error !== null
      && (this.#toldErrors.has(error) || this.#toldCodes.includes((error as { code?: string }).code ?? ""));
    if (!known) this.#listener.failed(error, operation);
  }

  #receive(event: ProjectLockEvent): void {
    if (event.type === "lock:error") {
      this.#toldErrors.add(event.error);
      this.#toldCodes.push(event.error.code);
    }
    apply(this.state, event);
    this.#listener.event(event);
    this.#listener.changed();
    this.presence.nudge();
    this.#lookSoon();
  }

  /** Asks the runtime for holders and waiters, one query at a time. Changes during a query cause another one. */
  async look(): Promise<void> {
    const holdfast = this.#holdfast;
    if (!holdfast || this.state.runtime !== "open") return;
    if (this.#looking) {
      this.#lookAgain = true;
      return;
    }
    this.#looking = true;
    try {
      const { held, pending } = await holdfast.inspect();
      if (holdfast === this.#holdfast) {
        this.state.held = held;
        this.state.pending = pending;
        this.#listener.changed();
      }
    } catch {
      // The lists stay as they were. If the runtime died, its own event says so.
    } finally {
      this.#looking = false;
      if (this.#lookAgain) {
        this.#lookAgain = false;
        this.#lookSoon();
      }
    }
  }

  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Events come in bursts. One query after a burst is enough. */
  #lookSoon(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      void this.look();
    }, 40);
  }
}
