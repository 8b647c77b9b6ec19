// Runs one file of the suite against holdfast.locks and leaves what testharness.js tells in globalThis.results.
setup({ explicit_done: true, output: false });
add_completion_callback((tests, { status, message }) => {
  globalThis.results = tests.map(({ name, status, message }) => ({ Name: name, Status: status, Message: message ?? "" }));
  if (status !== 0) results.push({ Name: "the whole file", Status: status, Message: message ?? "" });
});
(async () => {
  const { file, strategy, host } = Object.fromEntries(new URLSearchParams(location.search));
  const { openHoldfast } = await import("/holdfast.js");
  const holdfast = await openHoldfast({ strategy, host, root: `wpt ${file}` });
  await holdfast.ready;
  await holdfast.locks.request("before the first test", () => {});
  const { locks } = holdfast;
  const own = new Proxy(navigator, { get: (target, name) => (name === "locks" ? locks : Reflect.get(target, name, target)) });
  await new Promise((done, failed) => {
    const script = Object.assign(document.createElement("script"), { src: `source/${file}`, onload: done, onerror: failed });
    document.head.append(script);
  });
  play(own);
  done();
})().catch((error) => { globalThis.results = [{ Name: "the whole file", Status: 1, Message: String(error?.stack ?? error) }]; });
