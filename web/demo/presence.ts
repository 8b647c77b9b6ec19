// Demo tabs tell each other their names, and nudge each other when something changed, so that every tab's
// picture is current at once. The lock itself never depends on this: without it, lists follow once a second.

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

  /** Says who this tab is from now on, and asks the others who they are. */
  introduce(ownerId: string, name: string): void {
    this.#self = { ownerId, name };
    this.#names.set(ownerId, name);
    this.#send("hello");
  }

  /** Tells the other tabs to look again. */
  nudge(): void {
    this.#send("changed");
  }

  /** What to call an owner. Tabs of another page have introduced themselves to nobody: those go by their id. */
  nameOf(ownerId: string, ownerName?: string): string {
    return ownerName || this.#names.get(ownerId) || `Tab ${ownerId.slice(0, 4)}`;
  }

  #send(type: Message["type"]): void {
    if (this.#self) this.#channel?.postMessage({ type, ...this.#self } satisfies Message);
  }

  #receive(data: unknown): void {
    const message = data as Partial<Message> | null; // another version of this page may speak otherwise
    if (typeof message?.ownerId !== "string" || typeof message.name !== "string") return;
    this.#names.set(message.ownerId, message.name);
    if (message.type === "hello") this.#send("here");
    this.#onNudge();
  }
}
