// Calls from one tab to another: over a bare MessagePort, and of a service.

const echo = (value) => value;
let service, port;

const holdfast = async () => (await import("/holdfast.js")).openHoldfast({ root: "bench-service" });

/** Takes a bare Web Lock for as long as this tab lives. Resolves with the time at which the tab got it. */
const bareLock = () => new Promise((granted) => {
  navigator.locks.request("bare", () => {
    granted(performance.now());
    return new Promise(() => undefined);
  });
});

/** Brings the two ends of a MessageChannel to two tabs. */
function bare() {
  const { port: broker } = new SharedWorker("/raw-broker.js");
  return new Promise((done) => { broker.onmessage = ({ ports }) => done(ports[0]); });
}

export const calls = {
  /** From now on this tab serves, and answers over a bare port too. */
  async serve() {
    service = (await holdfast()).serve("echo", () => ({ echo }));
    await service.call("echo", 1);
    await bareLock();
    void bare().then((answering) => {
      answering.onmessage = ({ data: { n, args } }) => answering.postMessage({ n, value: echo(...args) });
    });
  },

  /** From now on this tab calls. */
  async join() {
    service = (await holdfast()).serve("echo", () => ({ echo }));
    for (let n = 0; n < 100; n++) await service.call("echo", n);
  },

  async meet() { port = await bare(); },

  /** Milliseconds for a call and its answer, one call after another. */
  async cycle(contender, n) {
    const waiting = new Map();
    if (port) {
      port.onmessage = ({ data: { n, value } }) => {
        waiting.get(n)(value);
        waiting.delete(n);
      };
    }
    const over = (n) => new Promise((done) => {
      waiting.set(n, done);
      port.postMessage({ n, args: [{ n, text: "a row" }] });
    });
    const call = contender === "bare MessagePort" ? over : (n) => service.call("echo", { n, text: "a row" });
    const begun = performance.now();
    for (let i = 0; i < n; i++) await call(i);
    return (performance.now() - begun) / n;
  },

  /**
   * Makes a call every two milliseconds until `stop`, which returns the longest time that one of them took, and the time from the
   * begin of that call until this tab got the bare lock.
   */
  begin() {
    const locked = bareLock(), longest = { Call: 0, begun: 0 };
    const timer = setInterval(async () => {
      const begun = performance.now();
      await service.call("echo", 1).then(() => {
        const took = performance.now() - begun;
        if (took > longest.Call) Object.assign(longest, { Call: took, begun });
      }, () => undefined); // "call-lost" tells at once
    }, 2);
    calls.stop = async () => {
      await service.call("echo", 1);
      clearInterval(timer);
      await service.call("echo", 1);
      return { Call: longest.Call, Lock: await locked - longest.begun };
    };
  },
  serves: () => service.serving,
  leave: () => service.close(),
};
