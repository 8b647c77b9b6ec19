// One tab's dealings with the server: opens the socket and opens it again, comes back to the room the tab was in, and
// keeps the state that the page shows.

import { read, write } from "./names.js";
import type { FromClient, FromServer, Room } from "./room-protocol.js";

export interface RoomState {
  /** Whether the server can be spoken to. */
  connected: boolean;
  /** The room this tab is in, as the server told it last. */
  room: Room | undefined;
  /** The code of what ended the stay in a room or kept this tab out of it. */
  problem: string | undefined;
  /** Whether an answer of the server is awaited that leads into a room. */
  entering: boolean;
}

/** Where a tab keeps its seat over a reload: the room, the name, and the token that proves who comes back. */
const seatKey = "holdfast-demo.seat";
interface Seat { roomId: string; name: string; token: string }

const firstPause = 250;
const longestPause = 5_000;
const pingEvery = 20_000;

export class RoomClient {
  readonly state: RoomState = { connected: false, room: undefined, problem: undefined, entering: false };
  readonly #changed: () => void;
  #socket: WebSocket | undefined;
  #token = "";
  #name = "";
  #pause = firstPause;
  #silent = false; // a ping has had no answer yet

  constructor(changed: () => void) {
    this.#changed = changed;
    setInterval(() => this.#ping(), pingEvery);
    this.#open();
  }

  create(name: string): void {
    this.#name = name;
    this.#enter({ type: "createRoom", userName: name });
  }

  enter(roomId: string, name: string): void {
    this.#name = name;
    this.#enter({ type: "enterTheRoom", roomId, userName: name });
  }

  answer(answer: string): void {
    if (this.state.room) this.#send({ type: "answer", roomId: this.state.room.id, answer });
  }

  clear(everyone: boolean): void {
    if (this.state.room) this.#send({ type: "clearAnswer", roomId: this.state.room.id, everyone });
  }

  /** Gives up the seat. Leaving is closing the socket; another one is opened for what comes next. */
  leave(): void {
    write(seatKey, "");
    this.state.room = undefined;
    this.state.problem = undefined;
    this.#pause = firstPause;
    this.#socket?.close(1000);
  }

  #enter(message: FromClient): void {
    this.state.problem = undefined;
    this.state.entering = true;
    this.#send(message);
    this.#changed();
  }

  #open(): void {
    const url = new URL("/ws", location.href);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(url);
    this.#socket = socket;
    socket.onmessage = (event: MessageEvent<unknown>) => {
      if (socket === this.#socket) this.#receive(event.data);
    };
    socket.onclose = () => {
      this.state.connected = false;
      this.state.entering = false;
      this.#changed();
      // Many tabs that lost one server should not all come back in the same instant.
      setTimeout(() => this.#open(), this.#pause * (0.5 + Math.random()));
      this.#pause = Math.min(this.#pause * 1.5, longestPause);
    };
  }

  /** Tells a connection that is dead but does not say so: the next ping finds the last one unanswered. */
  #ping(): void {
    if (!this.state.connected) return;
    if (this.#silent) this.#socket?.close();
    this.#silent = true;
    this.#socket?.send("ping");
  }

  #send(message: FromClient): void {
    if (this.#socket?.readyState === WebSocket.OPEN) {
      this.#socket.send(JSON.stringify({ ...message, userToken: this.#token }));
    }
  }

  #receive(data: unknown): void {
    this.#silent = false;
    if (typeof data !== "string" || data === "pong") return;
    const message = JSON.parse(data) as FromServer;
    switch (message.type) {
      case "connected":
        this.#token = message.userToken;
        this.#pause = firstPause;
        this.state.connected = true;
        this.#comeBack();
        break;
      case "roomCreated":
        location.hash = message.roomId;
        break;
      case "roomInfo":
        this.state.room = message.room;
        this.state.entering = false;
        this.state.problem = undefined;
        write(seatKey, JSON.stringify({ roomId: message.room.id, name: this.#name, token: this.#token } satisfies Seat));
        break;
      case "error":
        this.#refused(message.error);
        break;
      case "isExistTheRoomResult":
        break;
    }
    this.#changed();
  }

  #refused(code: string): void {
    this.state.problem = code;
    this.state.entering = false;
    if (["removed", "room_closed", "room_not_found", "not_in_room"].includes(code)) {
      this.state.room = undefined;
      write(seatKey, "");
    }
  }

  /** Takes the seat again that this tab had before a reload or a lost connection. */
  #comeBack(): void {
    const seat = savedSeat();
    if (!seat || seat.roomId !== location.hash.slice(1)) return;
    this.#name = seat.name;
    this.#enter({ type: "enterTheRoom", roomId: seat.roomId, userName: seat.name, previousToken: seat.token });
  }
}

function savedSeat(): Seat | undefined {
  const saved = read(seatKey);
  return saved ? JSON.parse(saved) as Seat : undefined;
}
