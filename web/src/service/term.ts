// A term of the tab that serves: it accepts calls and answers them.

import type { Functions, Validity } from "./candidate";
import type { Line } from "./lines";
import type { ToCalling, ToServing } from "./protocol";
import { described, movables } from "./values";

type Request = Extract<ToServing, { n: number }>;
type Answer = Exclude<Extract<ToCalling, { n: number }>, number>;

/** A tab that calls. */
interface Client {
  accepted: number;                                     // all calls up to this number were accepted
  early: Map<number, { request: Request; line: Line }>; // calls that overtook another one on another line
  lines: Set<Line>;
}

export class Term {
  readonly token: number;
  readonly #functions: Functions;
  readonly #valid: Validity;
  readonly #locked: boolean; // this page holds the lock of the term
  readonly #refused: (method: string) => unknown;
  readonly #clients = new Map<string, Client>();
  #open = true;
  #leaving = false;
  #running = 0;
  #late: (() => void)[] = []; // answers that came while the lease had expired
  #idle: (() => void) | undefined;

  constructor(token: number, functions: Functions, valid: Validity, locked: boolean, refused: (method: string) => unknown) {
    valid.renewed = () => this.#renewed();
    this.token = token;
    this.#functions = functions;
    this.#valid = valid;
    this.#locked = locked;
    this.#refused = refused;
  }

  /** Whether calls can be accepted at this moment. */
  get #accepts(): boolean { return this.#open && !this.#leaving && this.#valid(); }

  /** Adds a line to a tab that calls, and greets it. */
  add(id: string, line: Line): void {
    const client = this.#clients.get(id) ?? { accepted: 0, early: new Map(), lines: new Set() };
    this.#clients.set(id, client);
    client.lines.add(line);
    this.#post(line, { token: this.token, hello: true, locked: this.#locked });
  }

  /** Forgets a tab whose end is known. */
  drop(id: string): void {
    for (const line of this.#clients.get(id)?.lines ?? []) line.close();
    this.#clients.delete(id);
  }

  receive(id: string, message: ToServing, line: Line): void {
    const client = this.#clients.get(id);
    if (!client) return;
    if ("unreadable" in message) message = { token: this.token, n: this.#missing(client), method: "", args: [] }; // lines keep the order
    if (message.token !== this.token) return;
    if ("bye" in message) {
      this.#post(line, { token: this.token, end: client.accepted });
      return this.drop(id);
    }
    client.early.set(message.n, { request: message, line });
    this.#next(client);
  }

  #next(client: Client): void {
    for (let next; (next = client.early.get(client.accepted + 1)) && this.#accepts;) {
      client.early.delete(++client.accepted);
      this.#accept(next.request, next.line);
    }
  }

  /** The lease was renewed, perhaps after it had seemed to be over: a page that was busy learns late of renewals. */
  #renewed(): void {
    for (const answer of this.#late.splice(0)) answer();
    for (const client of this.#clients.values()) this.#next(client);
  }

  /** The number of the first call that has not arrived. */
  #missing({ accepted, early }: Client): number {
    let n = accepted + 1;
    while (early.has(n)) n++;
    return n;
  }

  /** The tab dies at any moment, so the calling tab learns of the call's acceptance before its function runs, unless it assumes that. */
  #accept({ n, method, args, assumed }: Request, line: Line): void {
    const { token } = this;
    if (!assumed) line.post(n); // the shortest message: the answer waits for it
    this.#running++;
    void this.#run(method, args).then(
      (value) => this.#answer(line, { token, n, value }),
      (failure: unknown) => this.#answer(line, { token, n, error: described(failure) }),
    ).finally(() => {
      if (!--this.#running) this.#idle?.();
    });
  }

  async #run(method: string, args: unknown[]): Promise<unknown> {
    if (!method) throw new DOMException("the arguments cannot be read in another tab", "DataCloneError");
    const run = this.#functions[method];
    if (typeof run !== "function" || run === (Object.prototype as unknown as Functions)[method]) throw this.#refused(method);
    return run.apply(this.#functions, args);
  }

  /** A tab whose lease has expired answers nothing until it is renewed: what the function did may have come after the next term began. */
  #answer(line: Line, answer: Answer): void {
    if (!this.#open) return;
    if (!this.#valid()) return void this.#late.push(() => this.#answer(line, answer));
    try {
      this.#post(line, answer);
    } catch (failure) {
      const moved = "value" in answer ? movables(answer.value) : [];
      if (moved.length && line.direct) return this.#answer({ ...line, post: (message) => line.post(message, moved) }, answer);
      this.#post(line, { token: this.token, n: answer.n, error: described(failure) });
    }
  }

  #post(line: Line, message: ToCalling): void { line.post(message); }

  /** Accepts nothing more, and waits for the answers of accepted calls. */
  async leave(limitMs: number): Promise<void> {
    this.#leaving = true;
    if (!this.#running) return;
    let late: ReturnType<typeof setTimeout>;
    await new Promise<void>((done) => {
      this.#idle = done;
      late = setTimeout(done, limitMs);
    }).finally(() => clearTimeout(late));
  }

  /** Ends the term. The calling tabs learn which calls were accepted. */
  end(): void {
    if (!this.#open) return;
    this.#open = false;
    for (const [id, { accepted, lines }] of this.#clients) {
      for (const line of lines) this.#post(line, { token: this.token, end: accepted });
      this.drop(id);
    }
  }
}
