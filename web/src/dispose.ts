/** Engines without Symbol.asyncDispose get the one that compilers of `await using` fall back to. Import this before it is used. */
const symbols = Symbol as { asyncDispose?: symbol };
symbols.asyncDispose ??= Symbol.for("Symbol.asyncDispose");

export {};
