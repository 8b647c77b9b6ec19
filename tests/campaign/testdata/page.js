// A page of the campaign: people type numbered words into documents that save themselves. The page writes down what happens;
// the campaign reads that from outside, and nothing in the page depends on it.
import { generator, sleep } from "/soak/common.js";
import { sha256 } from "/soak/late.js";

// A page of an older build is another address.
const former = location.search === "?before";

const now = () => performance.timeOrigin + performance.now();
const decoder = new TextDecoder();
const words = (text) => text.split("\n").filter(Boolean);
const log = [];
const note = (what, session, more = {}) => log.push({ what, session, at: now(), ...more });

/** Hands over what was written down since the last time. */
globalThis.take = () => log.splice(0);

// The steps of a page: each message between the page and its workers, each request for a lock, and each look into the files. The
// page waits at one of them until the campaign has decided how it ends.
let steps = 0;
const step = (name) => {
  if (++steps !== globalThis.stopAt) return;
  note("step", "", { code: name });
  const stop = new XMLHttpRequest();
  stop.open("POST", "/campaign/step", false);
  stop.send(JSON.stringify(take()));
};
const before = (of, method, name) => {
  const real = of[method];
  of[method] = function (...args) {
    step(name);
    return real.apply(this, args);
  };
};
before(LockManager.prototype, "request", "lock");
before(LockManager.prototype, "query", "locks");
before(StorageManager.prototype, "getDirectory", "files");
globalThis.Worker = class extends Worker {
  constructor(...args) {
    super(...args);
    this.addEventListener("message", ({ data }) => {
      for (const { event, kind } of data.messages ?? [data]) step(`from the worker: ${event?.type ?? kind ?? "an answer"}`);
    });
  }
};

// A snapshot is journalled once the worker says so. The test reads this on the way between the two, in either host.
const writes = new WeakMap(); // of each worker, by the number of the call: what was posted
const post = Worker.prototype.postMessage;
Worker.prototype.postMessage = function (message, ...rest) {
  if (typeof message === "object") step(`to the worker: ${[message.kind ?? message.do, message.method ?? (message.do === "journal" ? message.args[0] : "")].join(" ")}`);
  const [id, method, ...args] = message?.kind === "journal" ? [message.id, message.method, ...message.args]
    : message?.do === "journal" ? [message.file, ...message.args] : [];
  const moves = method === "merge" || method === "mergeNow"; // an entry of localStorage, into the file
  if (method === "write" || method === "seal" || moves) {
    if (!writes.has(this)) {
      writes.set(this, new Map());
      this.addEventListener("message", ({ data }) => answered(writes.get(this), data));
    }
    writes.get(this).set(id, posted(moves ? inserted(args[1]) : args[2], moves));
  }
  return post.call(this, message, ...rest);
};

/** The text that an entry of localStorage adds to each snapshot on which it may build. */
const inserted = ({ differences }) => ({ includes: (word) => differences.every(({ insert }) => insert.includes(word)) });

/** The words that a snapshot has and none before it had, by session. */
function posted(text, moves) {
  return [...sessions.values()].flatMap((session) => {
    const words = session.fresh.filter((word) => text.includes(`${word}\n`));
    if (words.length === 0) return [];
    session.fresh = session.fresh.filter((word) => !words.includes(word));
    if (!moves) note("posted", session.id, { words, cost: performance.now() - session.taken });
    return [[session, words]];
  });
}

function answered(asked, { kind, id, file, error, value }) {
  const call = kind === "result" || kind === "error" ? id : file;
  for (const [session, words] of asked.get(call) ?? []) {
    if (kind === "error" || error || ["busy", "unreadable", "failed"].includes(value)) session.fresh.unshift(...words);
    else note("journalled", session.id, { words });
  }
  asked.delete(call);
}

/** The documents that the page edits, by the number of the session. */
const sessions = new Map();
globalThis.sessions = sessions;

// The control of an end: what the browser lets a page write as it ends. The campaign reads it in another page: this
// process could still see what the browser has lost, which the log tells.
const announced = "announced:";
for (const key of Object.keys(localStorage)) {
  if (key.startsWith(announced)) note("sees its control", key.slice(announced.length));
}
for (const type of ["pagehide", "freeze"]) {
  addEventListener(type, () => {
    try {
      for (const id of sessions.keys()) localStorage.setItem(announced + id, "");
    } catch { /* there is no room: the campaign knows */ }
  });
}

/** The text of both sides, each word once. */
const union = (mine, theirs) => [...new Set([...words(theirs), ...words(mine)])].map((word) => `${word}\n`).join("");

/** Waits for a promise of the library, again after each download that failed. */
async function loaded(promise) {
  for (;;) {
    try {
      return await promise();
    } catch (error) {
      if (error.code !== "load-failed") throw error;
      await sleep(300);
    }
  }
}

class Session {
  text = "";
  typed = 0;
  snapshots = [];
  pending = []; // typed here, not known to be saved
  fresh = []; // typed here, not known to be journalled
  over = false;

  constructor(options) {
    Object.assign(this, options);
    if (former) delete options.open.baseURL;
    this.random = generator(options.seed);
    sessions.set(options.id, this);
  }

  async begin() {
    await sleep(this.at - Date.now()); // two pages may start together
    this.holdfast = createHoldfast(this.open);
    const merge = ({ mine, theirs }) => union(decoder.decode(mine), decoder.decode(theirs));
    this.saver = this.holdfast.createAutoSave(() => this.snapshot(), { ...this.options, ...globalThis.planted?.options, ...(this.merges && { merge }) });
    this.saver.addEventListener("autosave:preview", ({ detail }) => this.preview(detail));
    this.saver.addEventListener("autosave:editable", ({ detail }) => this.editable(detail));
    this.saver.addEventListener("autosave:saved", ({ detail }) => void this.saved(detail));
    this.saver.addEventListener("autosave:readonly", ({ detail }) => note("readonly", this.id, { code: detail.reason }));
    for (const type of ["draft", "conflict"]) {
      this.saver.addEventListener(`autosave:${type}`, ({ detail }) => note(type, this.id, { draft: (detail.draft ?? detail).id }));
    }
    await loaded(() => this.saver.ready);
    if (!this.saver.lease && !this.saver.readOnly) note("early", this.id);
    void this.type();
    const first = this.text;
    await loaded(() => this.holdfast.ready);
    if (globalThis.planted?.forgets) this.text = first;
    note("began", this.id);
  }

  preview({ content }) {
    this.text = decoder.decode(content);
    note("preview", this.id, { words: words(this.text) });
  }

  snapshot() {
    this.taken = performance.now();
    this.snapshots = [...this.snapshots.slice(-20), this.text];
    return this.text;
  }

  editable({ content, base }) {
    if (!content) return note("editable", this.id, { base, words: words(this.text) });
    this.text = decoder.decode(content);
    const present = new Set(words(this.text));
    const replaced = this.pending.filter((word) => !present.has(word));
    this.pending = [];
    note("loaded", this.id, { base, words: words(this.text), replaced });
  }

  async saved({ id, bytes, sha256: sum, token }) {
    note("committed", this.id, { generation: id, bytes });
    const text = this.snapshots.findLast((known) => known.length === bytes);
    if (text === undefined || (await sha256(text)) !== sum) return; // the text of another page, which this one adopted
    const present = new Set(words(text));
    const saved = this.pending.filter((word) => present.has(word));
    this.pending = this.pending.filter((word) => !present.has(word));
    if (saved.length > 0) note("saved", this.id, { words: saved, token });
  }

  async type() {
    while (!this.over) {
      if (!this.saver.readOnly || this.stubborn) {
        const word = `${this.id}.${this.typed++}`;
        if (globalThis.planted?.older && this.random() < 0.02) this.text = planted.older(this.text);
        this.text += `${word}\n`;
        this.pending.push(word);
        this.fresh.push(word);
        this.saver.markDirty();
        note("typed", this.id, { words: [word] });
      }
      await sleep(20 + this.random() * this.pace);
    }
  }

  /** Ends the AutoSave in the given way and empties the editor in the same task. */
  teardown(method) {
    this.over = true;
    if (globalThis.planted?.empties) this.text = "";
    const done = method === "close" ? this.holdfast.close() : this.saver.dispose();
    this.text = "";
    note("torn down", this.id);
    return done.then(() => method === "close" || this.holdfast.close()).catch((error) => note("refused", this.id, { code: error.code }));
  }

  requestEdit(options) {
    this.saver.requestEdit({ ...options, signal: AbortSignal.timeout(10_000) })
      .catch((error) => note("refused", this.id, { code: error.code ?? error.name }));
  }

  /** The content of the document, as this page sees it. Drafts come first: they become content, and never the other way round. */
  async inspect(history) {
    const drafts = [], seen = [];
    for (const { id, number, base, cause } of await this.saver.drafts()) {
      try {
        const found = words(decoder.decode(await this.saver.read(id)));
        seen.push(`draft ${id}/${number} ${cause} on ${base}: ${found.length} words`);
        drafts.push(...found);
      } catch (error) {
        if (error.code !== "not-found") throw error; // it has become the content meanwhile
      }
    }
    const generations = await this.saver.history();
    const content = generations.length > 0 ? words(decoder.decode(await this.saver.read("current"))) : [];
    const kept = [];
    for (const { id } of history ? generations : []) {
      try {
        kept.push(...words(decoder.decode(await this.saver.read(id))));
      } catch (error) {
        if (error.code !== "not-found") throw error; // it made room for another
      }
    }
    return { drafts, content, history: kept, seen: [...seen, ...generations.map(({ id, bytes, ownerName }) => `generation ${id} of ${ownerName}: ${bytes} bytes`)] };
  }

  /** A person who finds drafts takes their words over, saves, and only then throws them away. */
  async resolve() {
    for (const { id } of await this.saver.drafts()) {
      if (this.saver.readOnly) return;
      this.text = union(decoder.decode(await this.saver.read(id)), this.text);
      this.saver.markDirty();
      note("resolving", this.id, { draft: id });
      await this.saver.flushNow();
      await this.saver.resolveDraft(id, "discard");
      note("resolved", this.id, { draft: id });
    }
  }
}

globalThis.begin = (options) => new Session(options).begin().catch((error) => note("failed", options.id, { code: error.code ?? "", why: String(error?.stack ?? error) }));

addEventListener("error", (event) => note("uncaught", "", { why: String(event.error?.stack ?? event.message) }));
addEventListener("unhandledrejection", (event) => note("uncaught", "", { why: String(event.reason?.stack ?? event.reason) }));

// The control: a timer, a message to a worker, a write to a file, a message back. How long that takes here and now is how long
// a journal may take beyond its interval.
const control = new (Object.getPrototypeOf(Worker))("/campaign/control.js");
control.onmessage = ({ data: began }) => {
  if (began > 0) log.push({ what: "control", session: "", at: now(), began });
  setTimeout(() => control.postMessage(now()), 50);
};
const { createHoldfast } = await import(former ? "/before/holdfast.js" : "/holdfast.js");
globalThis.loaded = true;
