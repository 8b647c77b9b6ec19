// Runs the files of a suite that is written for Jasmine.
const jasmine = jasmineRequire.core(jasmineRequire), env = jasmine.getEnv();
Object.assign(globalThis, { jasmine }, jasmineRequire.interface(jasmine, env));
jasmine.DEFAULT_TIMEOUT_INTERVAL = 300_000;
env.configure({ random: false, specFilter: (spec) => spec.getFullName().includes(GREP) });
const results = [];
env.addReporter({
  specDone: ({ fullName, status, failedExpectations, duration }) => {
    if (status !== "excluded" && status !== "pending") results.push({ name: fullName, ms: duration, failure: failedExpectations.map(({ message }) => message).join("; ") });
  },
  jasmineDone: ({ failedExpectations }) => {
    for (const { message } of failedExpectations) results.push({ name: "the suite", ms: 0, failure: message });
    globalThis.results = results;
  },
});
for (const file of FILES) await import(file);
env.execute();
