// Messages between the pages and workers of one process.

import type { Clock, Owner } from "./clock";

type Heard = (event: { type: "message"; data: unknown }) => void;

/** A copy of a message, as another page would get it. A compiled module is shared. */
export function copied(value: unknown, seen = new Map<unknown, unknown>()): unknown {
  if (typeof value === "function" || typeof value === "symbol") throw new DOMException(`${String(value)} could not be cloned`, "DataCloneError");
  if (typeof value !== "object" || value === null || value instanceof WebAssembly.Module) return value;
  if (seen.has(value)) return seen.get(value);
  const one = opaque(value);
  if (one) {
    seen.set(value, one);
    return one;
  }
  // It is known before its parts are copied: it may contain itself.
  const copy = Array.isArray(value) ? [] : kind(value) === "Map" ? new Map() : kind(value) === "Set" ? new Set() : {};
  seen.set(value, copy);
  if (copy instanceof Map) for (const [key, part] of value as Map<unknown, unknown>) copy.set(copied(key, seen), copied(part, seen));
  else if (copy instanceof Set) for (const part of value as Set<unknown>) copy.add(copied(part, seen));
  else for (const [key, part] of Object.entries(value)) Object.defineProperty(copy, key, { value: copied(part, seen), writable: true, enumerable: true, configurable: true });
  return copy;
}

/** The name of a built-in class, also of another realm. */
const kind = (value: object): string => Object.prototype.toString.call(value).slice(8, -1);

/** A copy of an object that contains no other objects. */
function opaque(value: object): object | undefined {
  if (ArrayBuffer.isView(value)) return (value as Uint8Array).slice();
  if (value instanceof Error || value instanceof DOMException) return Object.assign(new Error(value.message), { name: value.name });
  switch (kind(value)) {
    case "ArrayBuffer": return (value as ArrayBuffer).slice(0);
    case "Date": return new Date(Number(value));
    case "RegExp": return new RegExp(value as RegExp);
    case "Blob": case "File": return value; // never changes
  }
  return undefined;
}

/** A receiver of messages, by `onmessage` or listeners. */
export class Receiver {
  onmessage: Heard | null = null;
  readonly #listeners = new Set<Heard>();

  addEventListener(type: string, listener: Heard, options?: { once?: boolean; signal?: AbortSignal }): void {
    if (type !== "message") return;
    const own: Heard = options?.once ? (event) => {
      this.#listeners.delete(own);
      listener(event);
    } : listener;
    this.#listeners.add(own);
    options?.signal?.addEventListener("abort", () => this.#listeners.delete(own));
  }

  removeEventListener(_type: string, listener: Heard): void { this.#listeners.delete(listener); }

  hear(data: unknown): void {
    const event = { type: "message", data } as const;
    this.onmessage?.(event);
    for (const listener of [...this.#listeners]) listener(event);
  }
}

export class Channels {
  readonly #open = new Set<{ owner: Owner; name: string; receiver: Receiver }>();
  readonly #clock: Clock;

  constructor(clock: Clock) { this.#clock = clock; }

  forget(owner: Owner): void {
    for (const one of this.#open) if (one.owner === owner) this.#open.delete(one);
  }

  /** The BroadcastChannel of a page or worker. */
  classFor(owner: Owner): new (name: string) => object {
    const open = this.#open, clock = this.#clock;
    return class extends Receiver {
      readonly #one: { owner: Owner; name: string; receiver: Receiver };

      constructor(readonly name: string) {
        super();
        this.#one = { owner, name: `${name}`, receiver: this };
        open.add(this.#one);
      }

      postMessage(message: unknown): void {
        for (const other of open) {
          if (other === this.#one || other.name !== this.#one.name) continue;
          const data = copied(message);
          clock.task(other.owner, () => open.has(other) && other.receiver.hear(data));
        }
      }

      close(): void { open.delete(this.#one); }
    };
  }

  /** The MessageChannel of a page or worker. */
  pairFor(owner: Owner): new () => object {
    const clock = this.#clock;
    return class {
      readonly port1 = port(() => this.port2);
      readonly port2: Receiver = port(() => this.port1);
    };
    function port(other: () => Receiver): Receiver {
      const receiver = new Receiver();
      return Object.assign(receiver, {
        postMessage: (message: unknown) => clock.task(owner, () => other().hear(copied(message))),
        close: () => undefined,
      });
    }
  }
}
