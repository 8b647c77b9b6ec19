// The project's state on the server for all machines: the writer, and the last save.

import { shortName } from "./names.js";
import { RoomClient } from "./room-client.js";

interface Told {
  type: "document.state" | "document.locked" | "document.unlocked" | "document.updated";
  revision: number;
  is_locked?: boolean;
  holder_name?: string;
}

/** The project's name among the server's documents, and the name of the room for everyone that has the project open. */
const project = "project";
const room = `/api/documents/${project}`;
const firstPause = 250;
const longestPause = 5_000;

/** Whether this page should share the project with other machines. */
export const shared = new URLSearchParams(location.search).has("machines");

export class Machines {
  /** The writer as the server shows it; undefined if there is none or nothing is known. */
  holder: string | undefined;
  connected = false;
  /** Everyone that has the project open, on all machines. */
  readonly company: RoomClient;
  readonly #changed: () => void;
  readonly #updated: () => void;
  #after: number | undefined;
  #pause = firstPause;

  /** updated is called after a new save. */
  constructor(name: string, changed: () => void, updated: () => void) {
    this.company = new RoomClient(changed, { roomId: project, name: shortName(name) });
    this.#changed = changed;
    this.#updated = updated;
    this.#open();
  }

  #open(): void {
    const url = new URL(`${room}/events${this.#after === undefined ? "" : `?after=${this.#after}`}`, location.href);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(url);
    socket.onopen = () => {
      this.#set(true);
      void this.#look();
    };
    socket.onmessage = ({ data }) => this.#hear(JSON.parse(data as string) as Told);
    socket.onclose = () => this.#again();
  }

  /** The state before the first event. */
  async #look(): Promise<void> {
    try {
      const lock = await (await fetch(`${room}/lock`, { cache: "no-store" })).json() as Told;
      this.holder = lock.is_locked ? lock.holder_name : undefined;
      this.#changed();
    } catch {
      // The socket ends too, and is opened again.
    }
  }

  #hear(told: Told): void {
    this.#after = told.revision;
    if (told.type === "document.unlocked") this.holder = undefined;
    if (told.type === "document.locked" || (told.type === "document.state" && told.is_locked)) this.holder = told.holder_name;
    if (told.type === "document.updated" || told.type === "document.state") this.#updated();
    this.#changed();
  }

  #set(connected: boolean): void {
    this.connected = connected;
    if (connected) this.#pause = firstPause;
    this.#changed();
  }

  #again(): void {
    this.#set(false);
    setTimeout(() => this.#open(), this.#pause * (0.5 + Math.random()));
    this.#pause = Math.min(this.#pause * 1.5, longestPause);
  }
}
