// Names of locks are any strings, including invalid Unicode. Go's are UTF-8, which cannot represent them. Such
// characters go to Go as a noncharacter and digits.

import type { Exports } from "./protocol";

const mark = "\u{10FFFE}";

const encode = (name: string): string =>
  name.replace(/\p{Surrogate}|\u{10FFFE}/gu, (c) => mark + c.codePointAt(0)!.toString(16).padStart(6, "0"));

const decode = (name: string): string =>
  name.replace(/\u{10FFFE}([0-9a-f]{6})/gu, (_, digits: string) => String.fromCodePoint(parseInt(digits, 16)));

/** The exports of Go, for callers with any names. */
export function withNames(exports: Exports): Exports {
  const { request, query } = exports;
  return {
    ...exports,
    request: (arg, ...rest) => request({ ...(arg as object), name: encode((arg as { name: string }).name) }, ...rest),
    query: async (...args) => {
      const state = await query(...args) as Record<string, { name: string }[]>;
      for (const info of Object.values(state).flat()) info.name = decode(info.name);
      return state;
    },
  };
}
