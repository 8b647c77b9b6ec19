// The JavaScript half of package jsbridge. Each operation that Go waits for has a number, and one call reports its end:
// tell(number, what), both numbers. A promise therefore costs Go one call out and one call in, and no object crosses,
// which would be slow.
//
// The module is loaded beside the Go program (see web/src/go.ts) and has no imports, so that Go's own tests can load
// it.

/** @typedef {(id: number, what: number) => unknown} Tell returns a false value when Go does not know the number */
/** @typedef {{args: unknown[], resolve: (value: unknown) => void, reject: (reason: unknown) => void}} Call */
/** @typedef {{abort?: AbortController, release?: () => void, over?: Promise<unknown>, look?: () => Promise<unknown>}} Asked */
/**
 * Locks that the page holds for a request of the program. The names have a NUL between them, and `shared` a bit for each
 * name. `stolen` resolves if one of the locks was stolen; release resolves when the browser has got all of them back; look
 * resolves after `stolen` if one was stolen before the call.
 * @typedef {{names: string, shared: number, stolen: Promise<unknown>, release: () => Promise<unknown>, look: () => Promise<unknown>}} Lent
 */

// The results of a request for a lock and of a function; port_js.go has the same.
const GRANTED = 0, DENIED = 1, FAILED = 2;
const DONE = 0, THREW = 1;

// Flags of a request.
const SHARED = 1, IF_AVAILABLE = 2, STEAL = 4, ABORTABLE = 8;

export class Port {
  /** @type {Tell} */
  #tell = () => undefined;
  #lastCall = 0;
  /** @type {Map<number, Call>} */
  #calls = new Map();
  /** @type {Map<number, Asked>} */
  #asked = new Map();
  /** @type {Set<Promise<unknown> | undefined>} */
  #releasing = new Set();
  /** @type {Promise<void> | undefined} the last request that waits for a release */
  #turn;
  /** @type {Map<number, unknown>} */
  #reasons = new Map();
  /** @type {BroadcastChannel[]} */
  #channels = [];
  /** The locks that no request has taken yet. @type {Map<number, Lent>} */
  #lent = new Map();

  /** @param {Tell} tell calls Go */
  open(tell) {
    this.#tell = tell;
  }

  /**
   * Reports a failure; Go asks for the reason if it needs it.
   * @param {number} id
   * @param {number} what
   * @param {unknown} reason
   */
  #fail(id, what, reason) {
    this.#reasons.set(id, reason);
    this.#tell(id, what);
    this.#reasons.delete(id);
  }

  /** @param {number} id */
  reason(id) {
    return this.#reasons.get(id);
  }

  /**
   * A function that calls Go under this number and returns a promise.
   * @param {number} id
   * @returns {(...args: unknown[]) => Promise<unknown>}
   */
  exported(id) {
    return (...args) => new Promise((resolve, reject) => {
      const call = ++this.#lastCall;
      this.#calls.set(call, { args, resolve, reject });
      if (this.#tell(id, call)) return;
      this.#calls.delete(call);
      reject(new Error("the program has ended"));
    });
  }

  /** @param {number} call */
  args(call) {
    return this.#calls.get(call)?.args;
  }

  /**
   * Settles the promise that an exported function returned.
   * @param {number} call
   * @param {boolean} ok
   * @param {unknown} value
   * @param {boolean} isText whether the value is encoded as JSON
   */
  settle(call, ok, value, isText) {
    const { resolve, reject } = /** @type {Call} */ (this.#calls.get(call));
    this.#calls.delete(call);
    (ok ? resolve : reject)(plain(value, isText));
  }

  /**
   * Runs a function of the page and reports its result.
   * @param {number} id
   * @param {(value: unknown) => Promise<unknown>} fn
   * @param {unknown} value
   * @param {boolean} isText whether the value is encoded as JSON
   */
  run(id, fn, value, isText) {
    fn(plain(value, isText)).then(() => this.#tell(id, DONE), (reason) => this.#fail(id, THREW, reason));
  }

  /**
   * Asks the browser for a lock, after the browser has handled earlier releases: a released lock is free only once the
   * browser has handled its promise. A steal does not wait: the page may freeze meanwhile, and the lock may get a new holder.
   * @param {number} id
   * @param {string} name
   * @param {number} flags
   * @param {number} [lent] the number of the locks that the page holds for this request
   */
  lock(id, name, flags, lent) {
    if (!this.#takes(id, name, flags & SHARED, lent)) this.#inTurn(id, (asked) => this.#request(id, asked, name, flags), !!(flags & STEAL));
  }

  /**
   * Asks for several locks at once and without waiting, all or nothing.
   * @param {number} id
   * @param {string} names with a NUL between them
   * @param {number} shared a bit for each name
   * @param {number} [lent] see lock
   */
  lockAll(id, names, shared, lent) {
    if (!this.#takes(id, names, shared, lent)) this.#inTurn(id, (asked) => this.#requestAll(id, asked, names.split("\0"), shared));
  }

  /**
   * The page holds locks for the program. The request that names their number gets them at once if it asks for just these;
   * otherwise they are released.
   * @param {number} number @param {Lent} lent
   */
  lend(number, lent) {
    this.#lent.set(number, lent);
    void lent.stolen.then(() => this.#lent.delete(number));
  }

  /** Releases locks that no request has taken. @param {number} number */
  reclaim(number) {
    const lent = this.#lent.get(number);
    this.#lent.delete(number);
    if (lent) this.#returned(lent);
  }

  /** Releases lent locks, before every later request. @param {Lent} lent */
  #returned(lent) {
    /** @type {Promise<unknown>} */
    const over = lent.release().then(() => this.#releasing.delete(over));
    this.#releasing.add(over);
  }

  /**
   * Gives the request the locks that the page holds for it. Returns whether there are such locks.
   * @param {number} id @param {string} names @param {number} shared @param {number} [number]
   */
  #takes(id, names, shared, number = 0) {
    const lent = this.#lent.get(number);
    if (lent?.names !== names || lent.shared !== shared) {
      this.reclaim(number);
      return false;
    }
    this.#lent.delete(number);
    this.#asked.set(id, { release: () => this.#returned(lent), look: () => lent.look() });
    queueMicrotask(() => this.#asked.has(id) && this.#tell(id, GRANTED)); // not while the program asks
    void lent.stolen.then((reason) => {
      if (this.#asked.delete(id)) this.#fail(id, FAILED, reason);
    });
    return true;
  }

  /**
   * @param {number} id
   * @param {(asked: Asked) => void} request
   * @param {boolean} [atOnce]
   */
  #inTurn(id, request, atOnce) {
    const asked = {};
    this.#asked.set(id, asked);
    const go = () => {
      if (this.#asked.has(id)) request(asked); // not abandoned
    };
    if (atOnce || (!this.#turn && this.#releasing.size === 0)) return go();
    const turn = this.#turn = Promise.allSettled([this.#turn, ...this.#releasing]).then(() => {
      if (this.#turn === turn) this.#turn = undefined;
      go();
    });
  }

  /**
   * @param {number} id
   * @param {Asked} asked
   * @param {string[]} names
   * @param {number} shared
   */
  #requestAll(id, asked, names, shared) {
    /** @type {(() => void)[]} */
    const granted = [];
    const freeAll = () => granted.forEach((release) => release());
    asked.release = freeAll;
    let open = names.length, denied = false;
    const answered = () => {
      if (--open > 0) return;
      if (!denied) return void this.#tell(id, GRANTED);
      this.release(id);
      this.#tell(id, DENIED);
    };
    /** @param {string} name @param {number} i */
    const request = (name, i) => navigator.locks.request(name, { mode: shared >> i & 1 ? "shared" : "exclusive", ifAvailable: true }, (lock) => {
      if (!this.#asked.has(id)) return; // abandoned, or one was refused
      const held = lock && new Promise((release) => granted.push(() => release(undefined)));
      denied ||= !lock;
      answered();
      return held;
    });
    const over = (/** @type {unknown} */ reason) => { // refused, or one was stolen: the others are useless
      const stolen = /** @type {Error | undefined} */ (reason)?.name === "AbortError";
      if (this.#asked.has(id)) {
        if (stolen && open > 0) this.#tell(id, DENIED); // before all have answered: nothing was granted yet
        else this.#fail(id, FAILED, reason);
      }
      this.release(id);
      freeAll();
    };
    const all = names.map(request);
    asked.over = Promise.allSettled(all).then(() => this.#releasing.delete(asked.over));
    Promise.all(all).catch(over);
  }

  /**
   * @param {number} id
   * @param {Asked} asked
   * @param {string} name
   * @param {number} flags
   */
  #request(id, asked, name, flags) {
    /** @type {LockOptions} */
    const options = { mode: flags & SHARED ? "shared" : "exclusive" };
    if (flags & IF_AVAILABLE) options.ifAvailable = true;
    if (flags & STEAL) options.steal = true;
    if (flags & ABORTABLE) options.signal = (asked.abort = new AbortController()).signal;
    /** @param {Lock | null} lock */
    const granted = (lock) => {
      if (!this.#asked.has(id)) return; // abandoned at the same moment
      if (lock === null) {
        this.#asked.delete(id);
        this.#tell(id, DENIED);
        return;
      }
      return new Promise((release) => {
        asked.release = () => release(undefined);
        this.#tell(id, GRANTED);
      });
    };
    const over = (/** @type {unknown} */ reason) => {
      if (this.#asked.has(id)) this.#fail(id, FAILED, reason); // refused, or stolen
      this.#asked.delete(id);
      this.#releasing.delete(asked.over);
    };
    asked.over = navigator.locks.request(name, options, granted).then(() => this.#releasing.delete(asked.over), over);
  }

  /**
   * Releases the lock, or abandons the request.
   * @param {number} id
   */
  release(id) {
    const asked = this.#asked.get(id);
    if (asked === undefined) return;
    this.#asked.delete(id);
    if (asked.over) this.#releasing.add(asked.over);
    if (asked.release) asked.release();
    else asked.abort?.abort();
  }

  /** Resolves when the program knows of an earlier steal of locks that the page holds for it. @param {number} id */
  look(id) {
    return this.#asked.get(id)?.look?.();
  }

  /** The browser's snapshot of its locks, taken after earlier releases have arrived. */
  async query() {
    await Promise.allSettled(this.#releasing);
    return navigator.locks.query();
  }

  /**
   * Sends a request to a server, in the browser's session there.
   * @param {string} method
   * @param {string} url
   * @param {Record<string, string>} headers
   * @param {string | Uint8Array<ArrayBuffer>} [body] text is JSON
   */
  send(method, url, headers, body) {
    const controller = new AbortController();
    if (typeof body === "string") headers["Content-Type"] = "application/json";
    const reply = fetch(url, {
      method, headers, signal: controller.signal, credentials: "include", cache: "no-store", redirect: "error", referrerPolicy: "no-referrer",
      ...(body && { body }),
    }).then(read);
    return { reply, abort: () => controller.abort() };
  }

  /**
   * Listens to the events of a document until the connection ends.
   * @param {string} url
   * @param {string} bearer the user's token, or ""; a browser can send it as a subprotocol alone
   * @param {(notice: object) => void} heard
   * @param {() => void} ended
   */
  listen(url, bearer, heard, ended) {
    const encoded = btoa(bearer).replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, "");
    const socket = new WebSocket(url.replace(/^http/, "ws"), bearer ? ["holdfast", `holdfast.bearer.${encoded}`] : []);
    socket.onclose = ended;
    socket.onmessage = ({ data }) => {
      try {
        const { type = "", revision = 0, token = 0, ask_id = "", holder_name = "" } = { ...JSON.parse(data) };
        heard({ type: `${type}`, revision: Number(revision), token: Number(token), ask: `${ask_id}`, holderName: `${holder_name}` });
      } catch {
        socket.close(); // not a Holdfast server
      }
    };
    return { close: () => socket.close() };
  }

  /**
   * A BroadcastChannel that closes with the program at the latest: a page with an open one does not stay in the
   * back/forward cache.
   * @param {string} name
   */
  channel(name) {
    const channel = new BroadcastChannel(name);
    this.#channels.push(channel);
    return channel;
  }

  /** Releases the locks of a dead program: unlike a worker, a page keeps them. */
  close() {
    this.#tell = () => undefined;
    for (const id of this.#asked.keys()) this.release(id);
    for (const number of this.#lent.keys()) this.reclaim(number);
    for (const channel of this.#channels) channel.close();
  }
}

/** @param {unknown} value @param {boolean} isText */
const plain = (value, isText) => (isText ? JSON.parse(/** @type {string} */ (value)) : value);

/**
 * The longest pause for which a server can ask. A maintenance may be shorter than announced, and a page that waits for the server keeps the
 * browser's lock meanwhile.
 */
const retryMs = 30_000;

/**
 * The fields of a server's reply that Go needs; times are milliseconds.
 * @param {Response} response
 */
async function read(response) {
  const { status, headers } = response;
  const reply = {
    status, retryAfter: Math.min(Number(headers.get("Retry-After")) * 1000 || 0, retryMs),
    etag: headers.get("ETag") ?? "", savedAt: instant(headers.get("Holdfast-Saved-At")), save: headers.get("Holdfast-Save") ?? "", token: Number(headers.get("Holdfast-Token")),
  };
  if (!headers.get("Content-Type")?.startsWith("application/json")) return { ...reply, body: new Uint8Array(await response.arrayBuffer()) };
  const { error = "", message = "", reason = "", token = 0, locked_at, expires_at, saved_at, etag = "", lease_id = "", slot = 0, ticket = "", tokens, paths, holders, ...one } = await response.json();
  const { holder_name = "", is_my_lock, is_mine = is_my_lock } = holders?.[0] ?? one;
  return {
    ...reply, error: `${error}`, message: `${message}`, reason: `${reason}`, token: Number(token), etag: `${etag}`, lease: `${lease_id}`, slot: Number(slot),
    ticket: `${ticket}`, tokens, paths, holders,
    holderName: `${holder_name}`, mine: is_mine === true,
    lockedAt: instant(locked_at), expiresAt: instant(expires_at), savedAt: instant(saved_at),
  };
}

/** @param {unknown} text */
const instant = (text) => Date.parse(`${text}`) || 0;
