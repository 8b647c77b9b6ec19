// The connection of a tab that calls to the tab that serves, for one term.

import { uuid } from "../uuid";
import { type Line, portLine } from "./lines";
import type { ToCalling, ToServing } from "./protocol";
import { type Described, revived } from "./values";

/** A call of this tab. */
export interface Call {
  method: string;
  args: unknown[];
  moved: Transferable[]; // ports among the arguments: they can be sent only once
  resolve: (value: unknown) => void;
  reject: (reason: unknown) => void;
  accepted: boolean;
  assumed: boolean;      // no acceptance will come: it counts as accepted unless the serving tab says otherwise
  direct: boolean;       // it was sent over a MessagePort
}

/** The owner of connections. */
export interface Owner {
  /** A term has begun. */
  began(token: number): void;
  /** Whether no later term is known. */
  current(token: number): boolean;
  /** The serving tab has greeted, perhaps over a better line. */
  ready(connection: Connection): void;
  answered(token: number): void;
  /** The serving tab is gone, or has a successor. */
  over(connection: Connection): void;
  /** The connection has ended, and the serving tab may go on. */
  leave(connection: Connection): void;
}

/** How many microtasks after an answer a call counts as accepted when it is sent. A loop that awaits each call needs fewer. */
const turns = 20;

export class Connection {
  readonly id = uuid();
  /** Of the term; 0 until the serving tab has answered. */
  token = 0;
  /** Whether the term is over: its acceptances still count, its answers do not. */
  past = false;
  /** Whether the page of the serving tab holds the lock of the term. */
  locked = false;
  readonly #closing = new AbortController();
  readonly #owner: Owner;
  readonly #lines: Line[] = [];
  readonly #sent = new Map<number, Call>(); // by number, in order
  #n = 0;
  #fresh = 0; // microtasks in which the serving tab has certainly just lived, because its answer came in this task
  #closed = false; // no message is on its way over the port any more
  #ended = false;  // no message is on its way at all

  constructor(owner: Owner) { this.#owner = owner; }

  addLine(line: Line): void { this.#lines.push(line); }

  /** The best line: the one that was added last. */
  get #line(): Line { return this.#lines.at(-1)!; }
  get direct(): boolean { return this.#line.direct; }

  /** Adds a port to the serving tab. It is used as soon as the serving tab has greeted over it. */
  addPort(port: MessagePort): void {
    const line = portLine(port, (message: ToCalling) => {
      if (!this.#lines.includes(line)) this.addLine(line);
      this.receive(message);
    }, () => {
      this.#closed = true;
      this.#owner.over(this);
    });
  }

  send(call: Call): void {
    const { method, args, moved } = call, { token } = this, n = ++this.#n;
    call.assumed = this.#fresh > 0 && !this.#sent.size;
    this.#fresh = 0;
    call.direct = this.direct;
    this.#sent.set(n, call);
    this.#post(call.assumed ? { token, n, method, args, assumed: true } : { token, n, method, args }, moved);
  }

  #post(message: ToServing, moved?: Transferable[]): void { this.#line.post(message, moved); }

  async #expire(): Promise<void> { for (this.#fresh = turns; this.#fresh > 0; this.#fresh--) await undefined; }

  receive = (message: ToCalling): void => {
    if (typeof message === "number") {
      const call = this.#sent.get(message);
      if (call) call.accepted = true;
      return;
    }
    if ("unreadable" in message) return this.#owner.leave(this); // it is not known whose answer that was
    if ("hello" in message) {
      if (this.token && message.token > this.token) return this.#owner.began(message.token); // the previous tab had only just woken
      if (this.token ? message.token !== this.token : !this.#owner.current(message.token)) return;
      this.token = message.token;
      this.locked = message.locked;
      return this.#owner.ready(this);
    }
    if (message.token !== this.token) return;
    if ("end" in message) {
      for (const [n, call] of this.#sent) {
        call.accepted = n <= message.end;
        call.assumed = false;
      }
      return this.end();
    }
    const call = this.#sent.get(message.n);
    if (!call) return;
    if (this.past) {
      call.accepted = true;
      return;
    }
    this.#sent.delete(message.n);
    void this.#expire();
    this.#owner.answered(this.token);
    if ("error" in message) call.reject(revived(message.error as Described));
    else call.resolve(message.value);
  };

  /** Aborts when this connection is closed. */
  get closing(): AbortSignal { return this.#closing.signal; }

  /** The term is over, and all its messages have arrived. */
  end(): void {
    this.#ended = true;
    this.#owner.leave(this);
  }

  /** Whether the acceptance of a call may still be on its way although the term is over. */
  get unsure(): boolean {
    return !this.#ended && [...this.#sent.values()].some(({ accepted, direct }) => !accepted && !(direct && this.#closed));
  }

  /** Sends no more calls. If the serving tab still runs, it says which calls it has accepted. */
  leave(): void {
    if (this.token && !this.past) this.#post({ token: this.token, bye: true });
    this.past = true;
  }

  /** Ends the connection, and returns the calls that were sent and have no answer. */
  close(): Call[] {
    this.leave();
    this.#closing.abort();
    for (const line of this.#lines) line.close();
    const left = [...this.#sent.values()];
    this.#sent.clear();
    return left;
  }
}
