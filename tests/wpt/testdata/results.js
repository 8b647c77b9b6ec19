// Leaves what testharness.js tells in globalThis.results.
setup({ output: false });
add_completion_callback((tests, { status, message }) => {
  globalThis.results = tests.map(({ name, status, message }) => ({ Name: name, Status: status, Message: message ?? "" }));
  if (status !== 0) results.push({ Name: "the whole file", Status: status, Message: message ?? "" });
});
