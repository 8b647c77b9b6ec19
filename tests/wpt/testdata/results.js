// Leaves what testharness.js reports in globalThis.results.
setup({ output: false, timeout_multiplier: 6 }); // the limits are for a machine that does nothing else
add_completion_callback((tests, { status, message }) => {
  globalThis.results = tests.map(({ name, status, message }) => ({ Name: name, Status: status, Message: message ?? "" }));
  if (status !== 0) results.push({ Name: "the whole file", Status: status, Message: message ?? "" });
});
