// holdfast.serve: one tab runs a service, and all tabs call it. A page loads this module when it calls serve.

import type * as Contract from "../../holdfast";
import type { Reason } from "../protocol";
import { Caller } from "./caller";
import type { Connection } from "./connection";
import { Candidate, type Start } from "./candidate";
import { hold, whenOver } from "./ended";
import { broker, channelLine, type Introduced, type Line, portLine, type ToBroker } from "./lines";
import type { ToAll, ToCalling, ToServing } from "./protocol";
import { Term } from "./term";
import { copied, described, revived } from "./values";

interface Facade {
  /** Opens a Holdfast of this page for another folder of this machine. */
  open(root: string): Contract.Holdfast;
  root: string;
  baseURL: URL | undefined;
  error(reason: Reason): Error;
}

/** How long close waits for the answers of calls that it has accepted. */
const leaveMs = 1000;

/** After so many tabs, or attempts of one tab, have failed to start the service, the calls that wait reject. */
const attempts = 3;

export class Server {
  readonly #target: EventTarget;
  readonly #facade: Facade;
  readonly #name: string; // of the channel of all tabs
  readonly #title: string;
  readonly #caller: Caller;
  readonly #candidate: Candidate | undefined;
  readonly #life = new AbortController();
  #channel: BroadcastChannel | undefined;
  #broker: MessagePort | undefined; // while this tab serves
  #asked: MessagePort | undefined; // to the shared worker, for a port to the tab that serves
  #term: Term | undefined;
  #failures = 0;
  #closing: Promise<void> | undefined;
  token: number | undefined;

  constructor(target: EventTarget, facade: Facade, name: string, start: Start) {
    this.#target = target;
    this.#facade = facade;
    this.#title = `the service ${JSON.stringify(name)}`;
    const folder = checked(facade, name, start);
    this.#name = `holdfast ${folder}`;
    this.#caller = new Caller({
      open: (connection) => this.#open(connection),
      port: (connection) => this.#port(connection),
      watch: (connection) => whenOver(this.#lock(connection.token), () => connection.end(), connection.closing),
      answered: (token) => { this.token = token; },
      error: (code, why) => this.#error(code, `${this.#title}: ${why}`),
    });
    this.#listen();
    this.#candidate = new Candidate(() => facade.open(folder), start, {
      error: (code, why) => this.#error(code, `${this.#title}: ${why}`),
      hold: (token, ended, lost) => hold(this.#lock(token), ended, lost),
      serve: (token, functions, validity, locked, ended) => this.#serve(new Term(token, functions, validity, locked, (method) =>
        this.#error("invalid-argument", `${this.#title} has no function ${JSON.stringify(method)}; it has ${Object.keys(functions).join(", ") || "none"}`)), ended),
      failed: (failure) => this.#failed(failure),
      over: (failure) => this.#end(failure),
    });
    this.#watch();
  }

  get serving(): boolean { return this.#term !== undefined; }

  call(method: unknown, ...args: unknown[]): Promise<unknown> {
    if (typeof method !== "string" || !method) return Promise.reject(this.#error("invalid-argument", "the method must be the name of a function"));
    return this.#caller.call(method, args);
  }

  close(): Promise<void> { return this.#closing ??= this.#close(); }

  async #close(): Promise<void> {
    const reason = this.#error("aborted", `${this.#title} was closed in this tab`);
    this.#caller.refuse(reason);
    await this.#term?.leave(leaveMs);
    await this.#end(reason);
  }

  async #end(reason: unknown): Promise<void> {
    this.#closing ??= Promise.resolve();
    this.#ended();
    this.#caller.end(reason);
    this.#life.abort();
    this.#channel?.close();
    this.#asked?.close();
    await this.#candidate?.close();
  }

  #error(code: Contract.LockErrorCode, why: string): Error {
    return this.#facade.error({ code, operation: "call", retryable: code === "acquire-timeout", message: `${code}: ${why}` });
  }

  #listen(): void {
    this.#channel?.close(); // the page went into the back/forward cache before this object was made
    this.#channel = new BroadcastChannel(this.#name);
    this.#channel.onmessage = ({ data }: MessageEvent<ToAll>) => {
      if ("began" in data) {
        if (this.#term && data.began > this.#term.token) this.#ended(); // another tab serves already
        this.#began(data.began);
      }
      else if ("failed" in data) this.#retry(revived(data.failed));
      else if (this.#term) { // also while it accepts nothing: nobody asks twice in a term
        const { connect } = data, term = this.#term;
        term.add(connect, channelLine(this.#pair(connect), (message: ToServing, line) => term.receive(connect, message, line)));
      }
    };
  }

  /** The name of the lock of a term. */
  #lock(token: number): string { return `${this.#name} ${token}`; }
  #pair(id: string): string { return `${this.#name} ${id}`; }
  #tell(message: ToAll): void { this.#channel?.postMessage(message); }

  #began(token: number): void {
    this.#failures = 0;
    this.#caller.began(token);
  }

  /** Serves until the term is over. */
  async #serve(term: Term, ended: AbortSignal): Promise<void> {
    if (ended.aborted) return; // while the tab waited for the lock of the term
    this.#term = term;
    ended.addEventListener("abort", () => this.#ended(), { once: true });
    this.#introduce(term);
    this.#tell({ began: term.token });
    this.#began(term.token);
    this.#dispatch("service:term", { token: term.token });
    if (!ended.aborted) await new Promise((over) => ended.addEventListener("abort", over, { once: true }));
  }

  /** Gets ports to tabs that call from the shared worker. */
  #introduce(term: Term): void {
    const port = this.#broker = broker(this.#facade.baseURL);
    if (!port) return;
    port.onmessage = ({ data: { id }, ports: [end] }: MessageEvent<Introduced>) => {
      if (!end || term !== this.#term) return;
      const line: Line = portLine(end, (message: ToServing) => term.receive(id, message, line), () => term.drop(id));
      term.add(id, line);
    };
    port.postMessage({ serves: this.#name, token: term.token } satisfies ToBroker);
  }

  #ended(): void {
    const term = this.#term;
    if (!term) return;
    this.#term = undefined;
    term.end();
    this.#broker?.postMessage({ ends: this.#name, token: term.token } satisfies ToBroker);
    this.#broker?.close();
  }

  /** `start` has failed in this tab. */
  #failed(failure: unknown): void {
    this.#tell({ failed: described(failure) });
    this.#dispatch("service:failed", { error: failure });
    this.#retry(failure);
  }

  #retry(failure: unknown): void {
    if (++this.#failures >= attempts) this.#caller.fail(failure);
  }

  #open(connection: Connection): void {
    const term = this.#term;
    if (!term) {
      connection.addLine(channelLine(this.#pair(connection.id), connection.receive));
      return this.#tell({ connect: connection.id });
    }
    // Calls within this tab need no message, but the same copies.
    const line = (receive: (message: never) => void): Line => ({ direct: true, close: () => undefined, post: (message, moved = []) => {
      const copy = moved.length ? structuredClone(message, { transfer: moved }) : copied(message).value;
      queueMicrotask(() => receive(copy as never));
    } });
    const back = line(connection.receive);
    connection.addLine(line((message: ToServing) => term.receive(connection.id, message, back)));
    term.add(connection.id, back as Line & { post(message: ToCalling): void });
  }

  #port(connection: Connection): void {
    this.#asked?.close();
    const port = this.#asked = broker(this.#facade.baseURL);
    if (!port) return;
    const { port1, port2 } = new MessageChannel();
    connection.addPort(port1);
    port.postMessage({ calls: this.#name, token: connection.token, id: connection.id } satisfies ToBroker, [port2]);
  }

  #dispatch(type: string, detail: object): void { this.#target.dispatchEvent(new CustomEvent(type, { detail })); }

  /** A page that ends says so. One in the back/forward cache does not call, serve or listen. */
  #watch(): void {
    if (!globalThis.document) return;
    const { signal } = this.#life;
    addEventListener("pagehide", ({ persisted }) => {
      this.#candidate?.sleep();
      if (!persisted) return;
      this.#caller.sleep();
      this.#channel?.close();
      this.#channel = undefined;
    }, { signal });
    addEventListener("pageshow", ({ persisted }) => {
      if (!persisted) return;
      this.#listen();
      this.#candidate?.wake();
      this.#caller.wake();
    }, { signal });
  }
}

/** The folder of a service. Its lock is that of a project of its own, so nobody who locks the project or a place waits for it. */
function checked({ root, error }: Facade, name: unknown, start: unknown): string {
  const refuse = (why: string): Error => error({ code: "invalid-argument", operation: "call", retryable: false, message: `invalid-argument: ${why}` });
  if (typeof name !== "string" || !name || /\p{Surrogate}/u.test(name)) throw refuse("name must be a text that is not empty, without lone surrogates");
  const encoded = encodeURIComponent(name).replaceAll(".", "%2E");
  if (encoded.length > 200) throw refuse("name must not be longer than 200 characters, escaped as in a URL");
  if (typeof start !== "function") throw refuse("start must be a function");
  return `${root}/services/${encoded}`;
}

/**
 * Begins to serve or call for the object that the page has, until `ended` aborts. The arguments are separate, because property names would
 * enlarge the facade.
 */
export function serve(baseURL: URL | undefined, error: Facade["error"], open: Facade["open"], root: string, name: string, start: Start, service: EventTarget, ended: AbortSignal): Server {
  ended.throwIfAborted();
  const server = new Server(service, { baseURL, error, open, root }, name, start);
  const call = (method: unknown, ...args: unknown[]): Promise<unknown> => server.call(method, ...args); // copies the arguments at once
  ended.addEventListener("abort", () => server.close());
  Object.defineProperties(service, { serving: { get: () => server.serving }, token: { get: () => server.token } });
  setTimeout(() => Object.defineProperty(service, "call", { value: call })); // calls that waited for this module come first
  return server;
}
