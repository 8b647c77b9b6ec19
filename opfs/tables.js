// The file of locks, for a Go program: a step reads and writes it while no other client can. A sync access handle is
// exclusive, so a client keeps it from step to step while no other client asks for it.
//
// A client that finds the file open posts {want: id} to a BroadcastChannel. The client that keeps the file closes it at
// once and names the first client that asked: {next: id}. The others let that client go first. If nobody asked, the id
// is empty. Every client also tries again by itself, so a lost message, a dead client or one without a channel
// costs only milliseconds.
//
// Many clients ask for a lock and release another one as soon as they have it. Such a client keeps the file for a few
// milliseconds although others wait, so that it opens the file once for both steps. This is anticipatory scheduling
// (Iyer and Druschel, 2001) as for disks: a short idle time costs less than a second seek.
//
// This module imports only its neighbour, so that Go's own tests can load it.

import { bounded, open } from "./savewriter.js";

/** @typedef {import("./savewriter.js").SyncHandle} SyncHandle */
/** @typedef {{ at: number, data: Uint8Array }} Patch */
/**
 * The arguments of a step. `file` is a FileSystemFileHandle. If the file has the `expected` content, `patches` are written, and the
 * file is then cut to `size`, unless that is 0; -1 means that the client only wants the content. A content is cut at `limit`. `keep`
 * says whether the file may stay open.
 * @typedef {[file: unknown, expected: Uint8Array, patches: Patch[], size: number, limit: number, keep: boolean]} Step
 */

/** All in milliseconds. */
const idleMs = 100, // the file is closed after this time without a step; web/src/holdfast.ts relies on twice this time
  longestMs = 500, // the file is opened again after this time, because somebody may have removed it
  decideMs = 20, // a client that received the content may decide again within this time, before others open the file
  followMs = 3, // a client whose steps follow each other may make one more within this time, before others open the file
  headMs = 12, // the next client may try for this time before others do
  tryMs = 200, // a step fails with the browser's exception after this time; the client tries again
  repeatMs = 50, // the pause between two requests for the file during one step
  burstMs = 4; // steps may follow each other for this time without a pause: a thread receives messages only in a pause

/** The clients in this thread. */
export class Tables {
  /** @type {Map<string, Table>} */
  #all = new Map();
  #may = true;
  #limits;

  /** @param {number} [idle] @param {number} [longest] @param {number} [follow] */
  constructor(idle = idleMs, longest = longestMs, follow = followMs) {
    this.#limits = { idle, longest, follow };
  }

  /**
   * Writes patches to a file that has the expected content, and returns null. Otherwise it changes nothing and returns
   * the content. The result may be a promise.
   * @param {string} client a name that no other client has
   * @param {string} channel the name of the channel for requests for the file
   * @param {Step} step
   * @returns {Promise<Uint8Array | null> | Uint8Array | null}
   */
  swap(client, channel, ...step) {
    let table = this.#all.get(client);
    if (!table) this.#all.set(client, table = new Table(client, channel, () => this.#may, () => this.#all.delete(client), this.#limits));
    return table.swap(step);
  }

  /**
   * Allows or forbids that files stay open between steps. A page that is hidden may be frozen.
   * @param {boolean} may
   */
  keep(may) {
    this.#may = may;
    if (!may) for (const table of this.#all.values()) table.close();
  }
}

/** One client's access to the file. */
class Table {
  #client;
  #name;
  #may;
  #rested;
  #limits;
  /** @type {any} where opened */
  #file;
  /** @type {SyncHandle | undefined} */
  #handle;
  #content = new Uint8Array(0); // of the file while it is open
  #kept = false; // this client has written to it since it was opened
  #opened = 0;
  #used = 0;
  #breathed = 0;
  #wrote = -Infinity; // when this client last wrote
  #awaited = 0; // the write after which others were not let in at once, since the file was opened
  #follows = false; // this client has written soon after a write
  #overtaken = 0; // how many decisions in a row were made on an old content
  #deciding = 0; // the time until which the client that received the content may decide again
  /** @type {Promise<unknown>} */
  #last = Promise.resolve(); // of the asynchronous steps
  #slow = 0; // the number of asynchronous steps
  /** @type {BroadcastChannel | undefined} */
  #channel;
  /** @type {string[]} */
  #waiting = []; // clients that asked for the file, in this order
  #others = 0; // the time until which others go first
  #askedAt = 0; // when this client asked, in its present step
  #asked = false; // this client has asked, and others may let it go first
  #named = false; // a message said that it is this client's turn
  #mine = false; // and the client has not tried since
  #turn = () => {};
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /**
   * @param {string} client
   * @param {string} name
   * @param {() => boolean} may
   * @param {() => void} rested called when nothing is left to close
   * @param {{ idle: number, longest: number, follow: number }} limits
   */
  constructor(client, name, may, rested, limits) {
    this.#client = client;
    this.#name = name;
    this.#may = may;
    this.#rested = rested;
    this.#limits = limits;
  }

  /** @param {Step} step */
  swap(step) {
    const now = performance.now();
    if (step[2].length && now - this.#wrote < 2 * this.#limits.follow) this.#follows = true;
    if (this.#handle && !this.#slow && now - this.#breathed < burstMs && now - this.#opened < this.#limits.longest) return this.#step(...step);
    this.#slow++;
    const done = this.#last.then(() => this.#slowly(step));
    this.#last = done.catch(() => undefined);
    return done;
  }

  /** @param {Step} step */
  async #slowly(step) {
    try {
      if (this.#handle) await paused();
      if (performance.now() - this.#opened >= this.#limits.longest) {
        await this.#dropRemoved();
        this.close();
      }
      this.#file = step[0];
      this.#breathed = performance.now();
      await this.#open(step[0], step[4]);
      return this.#step(...step);
    } finally {
      this.#slow--;
    }
  }

  /** Synchronous. @type {(...step: Step) => Uint8Array | null} */
  #step(_, expected, patches, size, __, keep) {
    this.#used = performance.now();
    this.#rest();
    const content = this.#content;
    const same = content.length === expected.length && content.every((byte, i) => byte === expected[i]);
    if (same) this.#write(patches, size);
    if (size >= 0) this.#overtaken = same ? 0 : this.#overtaken + 1;
    // A hidden page may be frozen before it decides, and a page whose thread is busy decides late. But each of them would
    // be overtaken forever.
    const again = !same && size >= 0 && this.#channel && (this.#may() || this.#overtaken > 1);
    this.#deciding = again ? this.#used + decideMs * Math.min(this.#overtaken, 10) : 0;
    // A client that only reads does not begin to keep the file.
    if (patches.length) this.#kept = true;
    if (!again && (!keep || !this.#kept || !this.#channel || !this.#may())) this.#pass();
    this.#yield();
    return same ? null : content.slice();
  }

  /**
   * Nothing is flushed: the next client that opens the file sees the writes, and after a loss of power no client lives.
   * @param {Patch[]} patches @param {number} size
   */
  #write(patches, size) {
    const handle = /** @type {SyncHandle} */ (this.#handle);
    try {
      for (const { at, data } of patches) {
        if (handle.write(data, { at }) !== data.length) throw new DOMException("not all of it was written", "QuotaExceededError");
        this.#content = written(this.#content, at, data);
      }
      if (size > 0) {
        handle.truncate(size);
        this.#content = this.#content.slice(0, size);
      }
      if (patches.length) this.#wrote = this.#used;
    } catch (error) {
      this.close(); // its content is unknown now
      throw error;
    }
  }

  /** @param {unknown} file @param {number} limit */
  async #open(file, limit) {
    const end = performance.now() + tryMs;
    for (let pause = 1; !this.#handle; pause = Math.min(pause * 1.25, 16)) {
      if (performance.now() >= this.#others) {
        this.#mine = false;
        try {
          this.#begin(await open(file), limit);
          break;
        } catch (/** @type {any} */ error) {
          if (!["NoModificationAllowedError", "InvalidStateError"].includes(error?.name) || performance.now() > end) throw error;
        }
      }
      this.#request();
      if (!this.#mine) await new Promise((/** @type {(value?: unknown) => void} */ turn) => {
        this.#turn = turn;
        setTimeout(turn, pause * (0.5 + Math.random()));
      });
    }
    if (this.#askedAt && !this.#named) this.#channel?.postMessage({ next: this.#client });
    this.#askedAt = 0;
    this.#named = false;
  }

  /** @param {SyncHandle} handle @param {number} limit */
  #begin(handle, limit) {
    try {
      this.#content = new Uint8Array(Math.min(handle.getSize(), limit));
      if (this.#content.length) handle.read(this.#content, { at: 0 });
    } catch (error) {
      handle.close();
      throw error;
    }
    this.#handle = handle;
    this.#kept = false;
    this.#awaited = 0;
    this.#opened = performance.now();
    this.#listen();
  }

  #listen() {
    if (this.#channel || typeof BroadcastChannel === "undefined") return;
    this.#channel = new BroadcastChannel(this.#name);
    this.#channel.onmessage = ({ data }) => {
      this.#waiting = this.#waiting.filter((id) => id !== data.next);
      if (data.want && !this.#waiting.includes(data.want)) this.#waiting.push(data.want);
      if (data.next && data.next !== this.#client) {
        this.#letPass();
      } else if (!data.want) {
        this.#others = 0;
        this.#mine = true;
        this.#named = Boolean(data.next);
        this.#turn();
      }
      this.#yield();
    };
  }

  /** Asks for the file. */
  #request() {
    this.#listen();
    const now = performance.now();
    if (this.#askedAt && now - this.#askedAt < repeatMs) return;
    this.#askedAt = now;
    this.#asked = true;
    this.#channel?.postMessage({ want: this.#client });
  }

  /** Closes the file for the clients that have asked, or later if this client is about to write. */
  #yield() {
    if (!this.#handle || !this.#waiting.length) return;
    if (this.#follows && this.#wrote >= this.#opened) this.#awaited ||= this.#wrote;
    const follows = this.#awaited === this.#wrote;
    const left = Math.max(this.#deciding, follows ? this.#wrote + this.#limits.follow : 0) - performance.now();
    if (left <= 0) return this.#pass();
    if (follows) this.#follows = false; // until it does
    setTimeout(() => this.#yield(), left);
  }

  /** Closes the file and names the next client. */
  #pass() {
    this.close();
    const next = this.#waiting.shift() ?? "";
    if (!next && !this.#asked) return;
    this.#asked = false;
    if (next) this.#letPass();
    this.#channel?.postMessage({ next });
  }

  /** Lets another client try first. */
  #letPass() {
    this.#others = performance.now() + headMs;
    this.#mine = false;
  }

  /**
   * Drops the handle of a file that was removed while it was open, because the site's data was cleared. Chromium never ends the
   * closing of such a file, and the thread would stand still.
   */
  async #dropRemoved() {
    const handle = this.#handle;
    const removed = handle && await bounded(this.#file.getFile()).then(() => false, ({ name }) => name === "NotFoundError");
    if (removed && this.#handle === handle) this.#handle = undefined;
  }

  /** Closes the file. */
  close() {
    this.#handle?.close();
    this.#handle = undefined;
  }

  /** Closes everything some time after the last step. */
  #rest() {
    const busy = () => this.#slow || performance.now() - this.#used < this.#limits.idle;
    this.#timer ??= setTimeout(async () => {
      if (!busy()) await this.#dropRemoved();
      this.#timer = undefined;
      if (busy()) return this.#rest();
      this.#pass();
      this.#channel?.close();
      this.#rested(); // the next step begins again
    }, Math.max(1, this.#used + this.#limits.idle - performance.now()));
  }
}

/** @param {Uint8Array<ArrayBuffer>} content @param {number} at @param {Uint8Array} data */
function written(content, at, data) {
  if (content.length < at + data.length) {
    const grown = new Uint8Array(at + data.length);
    grown.set(content);
    content = grown;
  }
  content.set(data, at);
  return content;
}

/** Lets pending tasks of this thread run first, above all messages. */
function paused() {
  return new Promise((/** @type {(value?: unknown) => void} */ done) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => { port1.close(); done(); };
    port2.postMessage(null);
  });
}
