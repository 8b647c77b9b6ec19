/** Mulberry32 by Tommy Ettinger: small, and the same everywhere. */
export const generator = (seed) => () => {
  seed = (seed + 0x6d2b79f5) | 0;
  let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
};

export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

/**
 * Sends a report to the checker and returns its answer: whether to go on, and whether to stop. A page that is frozen
 * may not get its answer, so it asks again under the same number. Reports are sent one after the other: the checker
 * treats a report with a lower number than the last one as a repetition.
 */
export const teller = (client) => {
  let number = 0;
  const send = async (what, more) => {
    const body = JSON.stringify({ client, what, number: ++number, ...more });
    for (;;) {
      try {
        const response = await fetch("/tell", { method: "POST", body, signal: AbortSignal.timeout(3000) });
        return await response.json();
      } catch (error) {
        console.info("told again:", body, error);
      }
      await sleep(100);
    }
  };
  let told = Promise.resolve();
  return (what, more = {}) => (told = told.then(() => send(what, more)));
};

/** Opens a runtime, again where that was not loaded in time: the page was frozen meanwhile. */
export async function start(openHoldfast, options, tell) {
  for (;;) {
    const hf = await openHoldfast(options);
    try {
      await hf.ready;
      return hf;
    } catch (error) {
      if (!error.retryable) throw error;
      await tell("note", { code: "to start" });
      await hf.close();
    }
  }
}

/** Runs a program until the checker stops it; an error that the program does not expect is a violation. */
export async function run(options, program) {
  const tell = teller(options.id);
  try {
    await tell("hello");
    await program(options, tell);
    await tell("done");
  } catch (error) {
    await tell("error", { why: `${error?.code ?? ""} ${error?.stack ?? error}` });
  }
}
