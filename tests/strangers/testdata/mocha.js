// Runs the file of a suite that is written for Mocha.
mocha.setup({ ui: "bdd", timeout: 60_000, grep: GREP });
for (const file of FILES) await import(file);
const results = [];
mocha.run()
  .on("pass", (test) => results.push({ name: test.fullTitle(), ms: test.duration, failure: "" }))
  .on("fail", (test, error) => results.push({ name: test.fullTitle(), ms: test.duration ?? 0, failure: String(error?.message ?? error) }))
  .on("end", () => { globalThis.results = results; });
