// A page's snapshot, as text or bytes that nobody else can change.

import type * as Contract from "../holdfast";

/** Encoding as many characters is a task of its own: the page may be busy for long enough already. */
const long = 100_000;

export type Taking = () => Contract.Snapshot | Promise<Contract.Snapshot>;

/** A snapshot, or the reason why it could not be taken. */
export interface Taken { text: ReturnType<Taking> }

/** Takes a snapshot now for a later caller. */
export function taken(take: Taking): Taken {
  try {
    return { text: take() };
  } catch (error) {
    const text = Promise.reject<string>(error);
    text.catch(() => undefined); // the caller that asks for the snapshot gets the error
    return { text };
  }
}

/** Text is saved as UTF-8. */
export type Content = string | Uint8Array<ArrayBuffer>;

const tag = (value: unknown): string => Object.prototype.toString.call(value).slice(8, -1);

/** Names the type of a value for the reader of the error. */
const named = (value: unknown): string =>
  value === null ? "null" : typeof value === "object" ? value.constructor?.name || tag(value) : typeof value;

const refused = (what: string): TypeError => new TypeError(
  `${what}; return a string, an ArrayBuffer, a view, a Blob or an object`);

/** Lone surrogates have no UTF-8: encoders change them silently. */
function isWhole(text: string): boolean {
  return (text as { isWellFormed?: () => boolean }).isWellFormed?.() ?? !/\p{Surrogate}/u.test(text);
}

/** Whether JSON leaves out what an object contains: it is in private fields or in the engine, whatever other fields the object has. */
const isHollow = (part: object): boolean => /^(Map|Set|File)$/.test(tag(part)) ||
  (Object.values(part).every((field) => /^[uf]/.test(typeof field)) && JSON.stringify(part) === "{}");

function json(value: object): string {
  const lost = (part: object, key = ""): TypeError => refused(`the snapshot has a ${named(part)}${key && ` at "${key}"`}, which JSON leaves out`);
  const text = JSON.stringify(value, (key, part: unknown) => {
    if (part && typeof part === "object" && !Array.isArray(part) && Object.getPrototypeOf(Object.getPrototypeOf(part) ?? part) && isHollow(part)) throw lost(part, key);
    return part;
  }) as string | undefined;
  if (!text) throw lost(value);
  return text;
}

/** A copy of content that the page may change afterwards. Throws if the copy would not equal the page's content. */
export function content(snapshot: Contract.Snapshot | Promise<Contract.Snapshot>): Content | Promise<Content> {
  if (typeof snapshot === "string") {
    if (!isWhole(snapshot)) throw refused("the snapshot has a lone surrogate");
    return snapshot;
  }
  if (typeof snapshot !== "object" || snapshot === null) throw refused(`the snapshot is ${named(snapshot)}`);
  if (typeof (snapshot as Promise<Contract.Snapshot>).then === "function") return Promise.resolve(snapshot as Promise<Contract.Snapshot>).then(content);
  if (ArrayBuffer.isView(snapshot)) return new Uint8Array(snapshot.buffer, snapshot.byteOffset, snapshot.byteLength).slice() as Uint8Array<ArrayBuffer>;
  const kind = tag(snapshot);
  if (/ArrayBuffer$/.test(kind)) return new Uint8Array(snapshot as ArrayBuffer).slice();
  if (/^(Blob|File)$/.test(kind)) return (snapshot as Blob).arrayBuffer().then((buffer) => new Uint8Array(buffer));
  return json(snapshot);
}

/** Whether two contents are the same. */
export function equal(a: Content, b: Content): boolean {
  if (typeof a === "string" || typeof b === "string") return a === b;
  return a.length === b.length && a.every((byte, at) => byte === b[at]);
}

const encoder = /* @__PURE__ */ new TextEncoder();

/** UTF-8, in a buffer that may be larger. Engines are several times as fast if they need not compute the size first. */
export function encoded(text: Content): Uint8Array<ArrayBuffer> {
  if (typeof text !== "string") return text.slice();
  const ascii = new Uint8Array(text.length);
  const { read, written } = encoder.encodeInto(text, ascii);
  if (read === text.length) return ascii;
  const bytes = new Uint8Array(written + 3 * (text.length - read));
  bytes.set(ascii.subarray(0, written));
  return bytes.subarray(0, written + encoder.encodeInto(text.slice(read), bytes.subarray(written)).written);
}

/** Lets pending tasks of this thread run first. Timers of a hidden page would take a second. */
export const pause = (): Promise<void> => new Promise((done) => {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => { port1.close(); done(); };
  port2.postMessage(0);
});

/** Resolves after so many milliseconds. */
export const after = (ms: number): Promise<undefined> => new Promise((done) => setTimeout(done, ms));

export async function encodedApart(text: Content): Promise<Uint8Array<ArrayBuffer>> {
  if (text.length > long) await pause();
  return encoded(text);
}
