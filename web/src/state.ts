// The state of an AutoSave: the same object until something changes.

import type * as Contract from "../holdfast";

type State = Contract.AutoSaveState;

/** The initial state of an AutoSave. */
export const first: State = /* @__PURE__ */ Object.freeze({ phase: "awaiting-lock", pendingBytes: 0, retryCount: 0, storage: "opfs", drafts: 0 });

/** A text that does not depend on the order of the fields. */
const spelled = (state: object): string => JSON.stringify(state, (_, part: unknown) =>
  (part && typeof part === "object" && !Array.isArray(part) ? Object.fromEntries(Object.entries(part).sort()) : part));

export class LastState {
  #now: State;
  #spelled = "";
  #marked: State | undefined;

  constructor(now: State) { this.#now = now; }

  get now(): State { return this.#now; }

  /** The state while Go has not received all marks. */
  get marked(): State {
    if (this.#now.phase !== "idle") return this.#now;
    return this.#marked ??= Object.freeze({ ...this.#now, phase: "debouncing", pendingBytes: Math.max(1, this.#now.pendingBytes) });
  }

  set(state: object, made: (state: object) => State = (same) => same as State): void {
    const now = spelled(state);
    if (now === this.#spelled) return;
    this.#spelled = now;
    this.#marked = undefined;
    this.#now = Object.freeze(made(state));
  }
}
