// Stands before every script of the suite, in pages, frames and workers alike: navigator.locks is Holdfast's. The package
// itself sees what `own.navigator` has. OPENING says how Holdfast is opened; `own.start` waits for it in a warm run.
globalThis.own ??= (function install(scope, openHoldfast) {
  const theirs = scope.navigator.locks;
  // The package in this realm takes this for its navigator.
  const browsers = new Proxy(scope.navigator, {
    get: (target, name) => (name === "locks" ? OPENING.alone ? undefined : theirs : Reflect.get(target, name, target)),
  });
  const waiting = []; // what was called before the package was there
  let locks;
  const calling = (method) => (...args) => (locks ? locks[method](...args)
    : new Promise((resolve, reject) => waiting.push(() => locks[method](...args).then(resolve, reject))));
  const ours = { request: calling("request"), query: calling("query") };
  Object.defineProperty(scope.navigator, "locks", { configurable: true, get: () => ours });
  const opened = openHoldfast.then(({ openHoldfast }) => openHoldfast(OPENING.options)).then((holdfast) => {
    locks = holdfast.locks;
    for (const call of waiting.splice(0)) call();
    return holdfast;
  });
  // A frame that has no document of the suite gets its locks when somebody looks into it.
  const frames = scope.HTMLIFrameElement && Object.getOwnPropertyDescriptor(scope.HTMLIFrameElement.prototype, "contentWindow");
  if (frames) {
    Object.defineProperty(scope.HTMLIFrameElement.prototype, "contentWindow", { ...frames, get() {
      const inner = frames.get.call(this);
      try {
        if (inner.location.href === "about:blank") inner.own ??= inner.eval(`(${install})`)(inner, inner.eval("import('/holdfast.js')"));
      } catch { /* it is of another origin */ }
      return inner;
    } });
  }
  return { navigator: browsers, start: () => (OPENING.warm ? opened.then((holdfast) => holdfast.ready) : Promise.resolve()) };
})(globalThis, IMPORTED);
