// The calls of one tab. Each waits for a term that accepts it.

import { type Call, Connection, type Owner } from "./connection";
import { copiedArgs } from "./values";

/** How much later than the news of the next term the last message of a tab that died or stands still may arrive over a channel. */
const settleMs = 250;

/** How long a call that moves a port waits for a line that can move it. */
const portMs = 3000;

export interface Wire {
  /** Asks the serving tab, whichever it is, to answer this connection. */
  open(connection: Connection): void;
  /** Asks for a port to the tab that serves in the connection's term. */
  port(connection: Connection): void;
  /** Ends the connection as soon as its term is certainly over. */
  watch(connection: Connection): void;
  answered(token: number): void;
  error(code: "call-lost" | "invalid-argument" | "unsupported", why: string): unknown;
}

export class Caller implements Owner {
  readonly #wire: Wire;
  #queue: Call[] = []; // not sent in this term
  #connection: Connection | undefined;
  #newest = 0; // the token of the latest term that is known
  #past: Connection | undefined; // its term is over, and acceptances may still be on their way
  #settling: ReturnType<typeof setTimeout> | undefined;
  #asleep = false;
  #late: ReturnType<typeof setTimeout> | undefined;
  #over: unknown; // why no call is possible any more

  constructor(wire: Wire) { this.#wire = wire; }

  call(method: string, args: unknown[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#over) return reject(this.#over);
      try {
        const { value, moved } = copiedArgs(args);
        this.#queue.push({ method, args: value as unknown[], moved, resolve, reject, accepted: false, assumed: false, direct: false });
      } catch (failure) {
        return reject(this.#wire.error("invalid-argument", `the arguments of ${method} cannot be sent to another tab: ${(failure as Error).message}`));
      }
      this.#flush();
    });
  }

  /** A term has begun. */
  began(token: number): void {
    if (token <= this.#newest) return;
    this.#newest = token;
    if (this.#open) this.over(this.#open);
    else this.#flush();
  }

  /** The connection that may have calls without an answer. */
  get #open(): Connection | undefined { return this.#connection ?? this.#past; }

  current(token: number): boolean { return token >= this.#newest; }
  answered(token: number): void { this.#wire.answered(token); }

  ready(connection: Connection): void {
    if (connection !== this.#connection) return;
    this.#newest = connection.token;
    if (!connection.direct) {
      this.#wire.port(connection);
      if (connection.locked) this.#wire.watch(connection);
    }
    this.#flush();
  }

  #flush(): void {
    if (this.#past || this.#asleep || !this.#queue.length) return;
    const connection = this.#connection;
    if (!connection) return this.#connect();
    if (!connection.token) return; // it is not answered yet
    for (let call; (call = this.#queue[0]);) {
      if (call.moved.length && !connection.direct) return this.#awaitPort(call);
      this.#queue.shift();
      connection.send(call);
    }
  }

  #connect(): void { this.#wire.open(this.#connection = new Connection(this)); }

  #awaitPort(call: Call): void {
    this.#late ??= setTimeout(() => {
      this.#late = undefined;
      if (this.#queue[0] !== call || this.#connection?.direct) return this.#flush(); // another one may wait by now
      this.#queue.shift();
      call.reject(this.#wire.error("unsupported", `${call.method} was not called: an argument is a port or a stream, which this browser can bring to the tab that serves only through a shared worker`));
      this.#flush();
    }, portMs);
  }

  /** The term of the connection is over. */
  over(connection: Connection): void {
    this.leave(connection);
    if (connection === this.#past) this.#settling ??= setTimeout(() => this.#retire(connection), settleMs);
  }

  /**
   * No more calls go over the connection. A call that was accepted may have happened; all others are made again once no
   * acceptance can be on its way.
   */
  leave(connection: Connection): void {
    if (connection === this.#connection) {
      this.#connection = undefined;
      this.#past = connection;
      connection.leave();
    }
    if (connection === this.#past && !connection.unsure) this.#retire(connection);
  }

  #retire(connection: Connection, all = false): void {
    clearTimeout(this.#settling);
    this.#settling = this.#connection = this.#past = undefined;
    const again: Call[] = [];
    for (const call of connection.close()) {
      if (!all && !call.accepted && !call.assumed && !call.moved.length) again.push(call);
      else call.reject(this.#over ?? this.#wire.error("call-lost", `the tab that ran the service has ended after ${call.method} was ${call.accepted ? "accepted" : "sent"} and before it was answered; it may have happened`));
    }
    this.#queue.unshift(...again);
    if (this.#over) this.refuse(this.#over);
    else this.#flush();
  }

  /** The page enters the back/forward cache, and receives no answer to what it has sent. Calls that wait continue when it returns. */
  sleep(): void {
    this.#asleep = true;
    if (this.#open) this.#retire(this.#open, true);
  }

  wake(): void {
    this.#asleep = false;
    this.#flush();
  }

  /** No tab can run the service: rejects the calls that no term has accepted. */
  fail(reason: unknown): void {
    const waiting = this.#queue.splice(0);
    if (this.#open) this.#retire(this.#open, this.#open.unsure);
    for (const { reject } of [...this.#queue.splice(0), ...waiting]) reject(reason);
  }

  /** Rejects the calls that wait, and all later ones. */
  refuse(reason: unknown): void {
    this.#over = reason;
    for (const { reject } of this.#queue.splice(0)) reject(reason);
  }

  /** Rejects all calls. */
  end(reason: unknown): void {
    this.refuse(reason);
    clearTimeout(this.#late);
    if (this.#open) this.#retire(this.#open, true);
  }
}
