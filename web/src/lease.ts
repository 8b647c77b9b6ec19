import "./dispose";
import type { AcquireOptions, LockMode, ProjectLockLease, Strategy } from "../holdfast";

/** The fields of a lease as Go describes it. */
export type LeaseFields = Omit<ProjectLockLease, "signal" | "release" | typeof Symbol.asyncDispose>;

/** The page's data of a lease, from the call that asks for it to its last event. */
export interface Entry {
  end: AbortController;
  onReadonly?: AcquireOptions["onReadonly"] | undefined;
  granted?: boolean;
}

/** A snapshot of a lease: it never changes, a renewal yields a new one. */
export class Lease implements ProjectLockLease {
  declare readonly leaseId: string;
  declare readonly ownerId: string;
  declare readonly ownerName?: string;
  declare readonly resource: string;
  declare readonly strategy: Strategy;
  declare readonly viaFallback: boolean;
  declare readonly mode: LockMode;
  declare readonly paths: string[][];
  declare readonly slot?: number;
  declare readonly within?: string;
  declare readonly token: number;
  declare readonly ttlMs: number;
  declare readonly heartbeatIntervalMs: number;
  declare readonly acquiredAt: number;
  declare readonly expiresAt: number;
  declare readonly nextHeartbeatAt: number;
  declare readonly renewAttempt: number;
  declare readonly signal: AbortSignal;
  readonly #release: (lease: Lease) => Promise<void>;

  constructor(fields: LeaseFields, signal: AbortSignal, release: (lease: Lease) => Promise<void>) {
    this.#release = release;
    Object.assign(this, fields);
    for (const list of [...fields.paths, fields.paths]) Object.freeze(list);
    // Not enumerable: a lease can be logged, compared and turned into JSON.
    Object.defineProperty(this, "signal", { value: signal });
    Object.freeze(this);
  }

  release(): Promise<void> {
    return this.#release(this);
  }

  [Symbol.asyncDispose](): Promise<void> { return this.release(); }
}
