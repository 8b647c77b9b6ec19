// One tab's use of the server's rooms: opens and reopens the socket, brings the tab back to its room, and keeps the
// state that the page shows.

import { read, write } from "./names.js";
import type { FromClient, FromServer, Room } from "./room-protocol.js";

export interface RoomState {
  /** Whether the server is reachable. */
  connected: boolean;
  /** This tab's room in the server's last message. */
  room: Room | undefined;
  /** The code of the error that ended the stay in a room or prevented entering it. */
  problem: string | undefined;
  /** Whether the tab waits for an answer of the server that leads into a room. */
  entering: boolean;
}

/** The storage of a tab's seat across a reload: the room, the name, and the token that proves the identity. */
const seatKey = "holdfast-demo.seat";
interface Seat { roomId: string; name: string; token: string }

const firstPause = 250;
const longestPause = 5_000;
const pingEvery = 20_000;

export class RoomClient {
  readonly state: RoomState = { connected: false, room: undefined, problem: undefined, entering: false };
  readonly #changed: () => void;
  readonly #home: string | undefined;
  readonly #seatKey: string;
  #socket: WebSocket | undefined;
  #token = "";
  #name = "";
  #pause = firstPause;
  #silent = false; // a ping is unanswered

  /**
   * With a home, the tab is in that room under the name whenever the server is reachable. Otherwise the tab is in the
   * room of its address, once it has entered.
   */
  constructor(changed: () => void, home?: { roomId: string; name: string }) {
    this.#changed = changed;
    this.#home = home?.roomId;
    this.#name = home?.name ?? "";
    this.#seatKey = home ? `${seatKey}.${home.roomId}` : seatKey;
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

  /** Uses another name from now on, even while the answer for the former name is pending. */
  rename(name: string): void {
    this.#name = name;
    const roomId = this.state.room?.id ?? this.#home;
    if (roomId !== undefined) this.#enter({ type: "enterTheRoom", roomId, userName: name, create: this.#home !== undefined });
  }

  answer(answer: string): void {
    if (this.state.room) this.#send({ type: "answer", roomId: this.state.room.id, answer });
  }

  clear(everyone: boolean): void {
    if (this.state.room) this.#send({ type: "clearAnswer", roomId: this.state.room.id, everyone });
  }

  /** Gives up the seat. Leaving closes the socket; another socket is opened for the next action. */
  leave(): void {
    write(this.#seatKey, "");
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
      // Many tabs that lost one server should not all reconnect at the same instant.
      setTimeout(() => this.#open(), this.#pause * (0.5 + Math.random()));
      this.#pause = Math.min(this.#pause * 1.5, longestPause);
    };
  }

  /** Detects a dead connection: the next ping finds the last one unanswered. */
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
        write(this.#seatKey, JSON.stringify({ roomId: message.room.id, name: this.#name, token: this.#token } satisfies Seat));
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
      write(this.#seatKey, "");
      if (this.#home !== undefined) this.#comeBack(); // as a new participant: another tab has the former seat, or the seat is gone
    }
  }

  /** Takes the seat of this tab before a reload or a lost connection. */
  #comeBack(): void {
    const seat = this.#savedSeat();
    if (this.#home !== undefined) {
      const former = seat && { previousToken: seat.token };
      this.#enter({ type: "enterTheRoom", roomId: this.#home, userName: this.#name, create: true, ...former });
      return;
    }
    if (!seat || seat.roomId !== location.hash.slice(1)) return;
    this.#name = seat.name;
    this.#enter({ type: "enterTheRoom", roomId: seat.roomId, userName: seat.name, previousToken: seat.token });
  }

  #savedSeat(): Seat | undefined {
    const saved = read(this.#seatKey);
    return saved ? JSON.parse(saved) as Seat : undefined;
  }
}
