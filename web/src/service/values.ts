// Values and errors on their way between tabs: structured clones, with ports and streams moved along.

/** Kinds of objects that can be moved but not cloned. */
const movable = ["MessagePort", "ReadableStream", "WritableStream", "TransformStream", "OffscreenCanvas", "RTCDataChannel"];

export interface Copy { value: unknown; moved: Transferable[] }

const kind = (value: unknown): string => Object.prototype.toString.call(value).slice(8, -1);

/** The ports and streams inside a value. */
export function movables(value: unknown, found: Transferable[] = [], seen = new Set<unknown>()): Transferable[] {
  if (typeof value !== "object" || value === null || seen.has(value)) return found;
  seen.add(value);
  if (movable.includes(kind(value))) found.push(value as Transferable);
  else if (value instanceof Map) for (const part of value) movables(part, found, seen);
  else if (Array.isArray(value) || value instanceof Set || kind(value) === "Object") {
    for (const part of value instanceof Set ? value : Object.values(value)) movables(part, found, seen);
  }
  return found;
}

/** Whether a value is its own copy. */
const plain = (value: unknown): boolean => value === null || !["object", "function", "symbol"].includes(typeof value);

/** A copy of the arguments of most calls, which costs less than a structured clone: values, and flat objects of values. */
function flat(args: unknown[]): unknown[] | undefined {
  const copy: unknown[] = [];
  for (const arg of args) {
    if (plain(arg)) copy.push(arg);
    else if (Object.getPrototypeOf(arg) !== Object.prototype || !Object.values(arg as object).every(plain)) return undefined;
    else copy.push({ ...arg as object });
  }
  return copy;
}

/** Copies the arguments of a call as a message to another tab would. Throws a DataCloneError if that is not possible. */
export function copiedArgs(args: unknown[]): Copy {
  const value = flat(args);
  return value ? { value, moved: [] } : copied(args);
}

/** Copies a value as a message to another tab would. Throws a DataCloneError if that is not possible. */
export function copied(value: unknown): Copy {
  // Test runners that emulate a page may have no structuredClone.
  if (typeof structuredClone === "undefined") return { value, moved: [] };
  try {
    return { value: structuredClone(value), moved: [] };
  } catch (failure) {
    const moved = movables(value);
    if (!moved.length) throw failure;
    return structuredClone({ value, moved }, { transfer: moved });
  }
}

/** An error as a message carries it. */
export type Described = { thrown: unknown } | { name: string; message: string; code: unknown };

/** Describes what a function has thrown. */
export function described(failure: unknown): Described {
  const { name, message, code } = Object(failure) as Record<string, unknown>;
  if (failure instanceof Error || typeof message === "string") {
    return { name: String(name), message: String(message), code: ["string", "number"].includes(typeof code) ? code : undefined };
  }
  try {
    return { thrown: copied(failure).value };
  } catch {
    return { thrown: String(failure) };
  }
}

const kinds: Record<string, new (message: string) => Error> = { TypeError, RangeError, SyntaxError, ReferenceError, EvalError, URIError };

/** The error of that description: its name, message and code are the same. */
export function revived(description: Described): unknown {
  if ("thrown" in description) return description.thrown;
  const { name, message, code } = description;
  const error = new (Object.hasOwn(kinds, name) ? kinds[name]! : Error)(message);
  for (const [key, value] of Object.entries({ name, code })) {
    if (value !== undefined && (error as unknown as Record<string, unknown>)[key] !== value) Object.defineProperty(error, key, { value, writable: true, configurable: true });
  }
  return error;
}
