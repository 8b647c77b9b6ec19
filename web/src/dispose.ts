/** Engines without Symbol.asyncDispose get the one that compilers of `await using` fall back to. Import this before it is used. */
(Symbol as { asyncDispose?: symbol }).asyncDispose ??= Symbol.for("Symbol.asyncDispose");

export {};
