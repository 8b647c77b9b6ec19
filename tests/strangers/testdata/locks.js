// Stands before a suite, in pages and in workers: navigator.locks is Holdfast's, opened as the constant says.
const opening = OPENING;
globalThis.process ??= { env: {}, version: "", browser: true }; // what npm's packages look for
const keys = FileSystemDirectoryHandle.prototype.keys;
// The suites empty the storage before each test: that of Holdfast stays.
FileSystemDirectoryHandle.prototype.keys = async function* () {
  for await (const name of keys.call(this)) if (name !== "holdfast-strangers") yield name;
};
if (opening.strategy) {
  const theirs = navigator.locks;
  if (opening.alone) Object.defineProperty(navigator, "locks", { configurable: true, value: undefined });
  globalThis.browsers = new Proxy(navigator, {
    get: (target, name) => (name === "locks" ? opening.alone ? undefined : theirs : Reflect.get(target, name, target)),
  });
  const { openHoldfast } = await import("/holdfast.js");
  const holdfast = await openHoldfast({ strategy: opening.strategy, host: opening.host, root: `holdfast-strangers/${opening.root}` });
  await holdfast.ready;
  Object.defineProperty(navigator, "locks", { configurable: true, value: holdfast.locks });
}
