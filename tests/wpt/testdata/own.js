// Stands before every script of the suite, in pages, frames and workers alike: a navigator whose locks are holdfast's.
// The package itself goes on seeing the browser's own. Requests made before it is ready wait for it.
globalThis.own ??= (() => {
  const opened = import("/holdfast.js").then(async ({ openHoldfast }) => {
    const holdfast = await openHoldfast(OPTIONS);
    await holdfast.ready;
    await holdfast.locks.request("before the first test", () => {});
    ready = holdfast.locks;
  });
  let ready;
  const ask = (method) => (...args) => (ready ? ready[method](...args) : opened.then(() => ready[method](...args)));
  const waiting = { request: ask("request"), query: ask("query") };
  const own = new Proxy(navigator, {
    get: (target, name) => (name === "locks" ? (ready ?? waiting) : Reflect.get(target, name, target)),
  });
  return { navigator: own, opened };
})();
