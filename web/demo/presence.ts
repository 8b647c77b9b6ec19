// Demo tabs send each other their names, and notify each other of changes, so that every tab's view is current at once.
// The lock never depends on this: without it, the lists update once per second.

interface Message { type: "hello" | "here" | "changed"; ownerId: string; name: string }

export class Presence {
  readonly #names = new Map<string, string>();
  readonly #channel: BroadcastChannel | undefined;
  readonly #onNudge: () => void;
  #self: { ownerId: string; name: string } | undefined;

  constructor(onNudge: () => void) {
    this.#onNudge = onNudge;
    if (typeof BroadcastChannel === "undefined") return;
    this.#channel = new BroadcastChannel("holdfast-demo");
    this.#channel.onmessage = (message: MessageEvent<unknown>) => this.#receive(message.data);
  }

  /** Publishes this tab's name, and asks the other tabs for theirs. */
  introduce(ownerId: string, name: string): void {
    this.#self = { ownerId, name };
    this.#names.set(ownerId, name);
    this.#send("hello");
  }

  /** Tells the other tabs to query again. */
  nudge(): void {
    this.#send("changed");
  }

  /** The name of an owner. Tabs of another page have published no name, so their ids are used. */
  nameOf(ownerId: string, ownerName?: string): string {
    return ownerName || this.#names.get(ownerId) || `Tab ${ownerId.slice(0, 4)}`;
  }

  #send(type: Message["type"]): void {
    if (this.#self) this.#channel?.postMessage({ type, ...this.#self } satisfies Message);
  }

  #receive(data: unknown): void {
    const message = data as Partial<Message> | null; // another version of this page may use another format
    if (typeof message?.ownerId !== "string" || typeof message.name !== "string") return;
    this.#names.set(message.ownerId, message.name);
    if (message.type === "hello") this.#send("here");
    this.#onNudge();
  }
}
