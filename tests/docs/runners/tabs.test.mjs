// The contract without a browser, in Node.js alone.

import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { createTestHoldfast } from "holdfast/testing";

let browser;
beforeEach(() => { browser = createTestHoldfast(); });
afterEach(() => browser.close());

/** A tab whose user types into a text that saves itself. */
function editor(options, autosave) {
  const tab = browser.tab(options);
  const page = { tab, text: "", holdfast: tab.holdfast };
  page.autosave = tab.holdfast.createAutoSave(() => page.text, autosave);
  page.autosave.addEventListener("autosave:editable", ({ detail }) => {
    if (detail.content) page.text = new TextDecoder().decode(detail.content);
  });
  page.type = (text) => {
    page.text += text;
    page.autosave.markDirty();
  };
  return page;
}

const code = (promise) => browser.until(promise).then(() => "", (error) => error.code);
const current = async ({ autosave }) => new TextDecoder().decode(await browser.until(autosave.read("current")));

test("one tab has the lock, and the next one gets it when that tab dies", async () => {
  const ann = browser.tab({ ownerName: "Ann" }), { holdfast } = browser.tab({ ownerName: "Ben" });
  const lease = await browser.until(ann.holdfast.acquireProjectLock());
  assert.equal(lease.strategy, "web-lock");
  assert.equal(await code(holdfast.acquireProjectLock({ ifAvailable: true })), "acquire-denied");
  assert.equal((await browser.until(holdfast.inspect())).held[0].ownerName, "Ann");
  const next = holdfast.acquireProjectLock();
  await browser.settle();
  ann.crash();
  const granted = await browser.until(next, 1000);
  assert.ok(granted.token > lease.token);
});

for (const end of ["crash", "leave"]) test(`a tab that ends while it starts takes no lock afterwards: ${end}`, async () => {
  for (let steps = 0; steps < 40; steps++) {
    const first = browser.tab(), { holdfast } = browser.tab();
    first.holdfast.acquireProjectLock().catch(() => undefined);
    for (let step = 0; step < steps; step++) await null;
    first[end]();
    const lease = await browser.until(holdfast.acquireProjectLock({ timeoutMs: 5000 }));
    await browser.until(lease.release());
  }
});

test("no time passes unless the test moves it", async () => {
  const { holdfast } = browser.tab();
  const lease = await browser.until(holdfast.acquireProjectLock());
  const begun = browser.now;
  let renewed = 0;
  holdfast.addEventListener("lock:renewed", () => renewed++);
  await browser.settle();
  assert.equal(browser.now, begun);
  assert.equal(renewed, 0);
  await browser.advance(3_600_000);
  assert.equal(browser.now, begun + 3_600_000);
  assert.ok(renewed >= 350 && renewed <= 361, `${renewed} renewals in an hour`);
  assert.equal(lease.signal.aborted, false);
});

test("text is saved, handed over and kept in the history", async () => {
  const ann = editor({ ownerName: "Ann" }), ben = editor({ ownerName: "Ben" });
  await browser.until(Promise.all([ann.autosave.ready, ben.autosave.ready]));
  const [first, second] = ann.autosave.readOnly ? [ben, ann] : [ann, ben];
  assert.equal(second.autosave.readOnly, true);
  first.type("from the first");
  await browser.advance(5000);
  assert.equal(first.autosave.state().phase, "idle");
  await browser.until(second.autosave.requestEdit());
  await browser.settle();
  assert.equal(second.text, "from the first");
  assert.equal(first.autosave.readOnly, true);
  second.type(", and the second");
  await browser.until(second.autosave.flushNow());
  assert.equal(await current(second), "from the first, and the second");
  assert.equal((await browser.until(second.autosave.history())).length, 2);
});

for (const [end, cause] of [["crash", "crashed"], ["leave", "closed"]]) {
  test(`text of a tab that ends by ${end} reaches the next tab`, async () => {
    const ann = editor({ ownerName: "Ann" }, { debounceMs: 60_000, idleMs: 60_000 });
    await browser.until(ann.autosave.ready);
    ann.type("typed");
    await browser.advance(1000); // the journal follows
    ann.tab[end]();
    const ben = editor({ ownerName: "Ben" });
    await browser.until(ben.autosave.ready);
    await browser.advance(10_000);
    assert.equal(ben.text || await current(ben), "typed", cause);
    assert.equal(ben.autosave.readOnly, false);
  });
}

test("a lease expires while the computer sleeps", async () => {
  const tab = browser.tab();
  const lease = await browser.until(tab.holdfast.acquireProjectLock());
  const errors = [];
  tab.holdfast.addEventListener("lock:error", ({ detail }) => errors.push(detail.error.code));
  await browser.faults.expire(tab);
  await browser.advance(1000);
  assert.equal(lease.signal.aborted, true);
  assert.deepEqual(errors, ["lease-stale"]);
});

test("a tab wakes after another one has taken its lock", async () => {
  const ann = browser.tab(), ben = browser.tab(), options = { ttlMs: 15_000, heartbeatIntervalMs: 5000, backoff: { maxRetries: 0 } };
  const lost = await browser.until(ann.holdfast.acquireProjectLock(options));
  const taken = ben.holdfast.acquireProjectLock(options);
  await browser.settle();
  ann.suspend();
  await browser.advance(32_000);
  assert.equal((await taken).signal.aborted, false);
  ann.resume();
  await browser.settle(); // both want the file of locks at the same moment, and time stands still
  assert.equal(lost.signal.aborted, true);
});

test("nothing of a suspended tab runs when its lock is stolen", async () => {
  const ann = browser.tab(), { holdfast } = browser.tab();
  const told = [];
  ann.holdfast.locks.request("name", () => new Promise(() => undefined)).catch(({ name }) => told.push(name));
  await browser.settle();
  ann.suspend();
  await browser.until(holdfast.locks.request("name", { steal: true }, () => undefined));
  await browser.settle();
  assert.deepEqual(told, []);
  ann.resume();
  await browser.settle();
  assert.deepEqual(told, ["AbortError"]);
});

test("a lock is stolen", async () => {
  const { holdfast } = browser.tab();
  const lease = await browser.until(holdfast.acquireProjectLock());
  await browser.faults.steal();
  await browser.advance(1000);
  assert.equal(lease.signal.reason?.code, "lease-lost");
});

test("a write fails, and it is tried again", async () => {
  const ann = editor();
  await browser.until(ann.autosave.ready);
  await browser.advance(1000);
  ann.type("typed");
  browser.faults.failWrites(3);
  assert.equal(await code(ann.autosave.flushNow()), "write-failed");
  await browser.advance(60_000);
  assert.equal(await current(ann), "typed");
});

test("the storage is full, and has room again", async () => {
  const ann = editor();
  await browser.until(ann.autosave.ready);
  ann.type("typed");
  browser.faults.fillStorage();
  assert.equal(await code(ann.autosave.flushNow()), "quota-exceeded");
  browser.faults.fillStorage(Infinity);
  await browser.advance(120_000);
  assert.equal(await current(ann), "typed");
});

test("a server that does not answer is not reached, in the test's time", async () => {
  browser.faults.cutServer();
  const { holdfast } = browser.tab({ server: { url: "http://localhost:9" } });
  assert.equal(await code(holdfast.acquireProjectLock({ timeoutMs: 20_000 })), "acquire-timeout");
});

test("a listener that subscribes again while it is called gets the next event, and one that is removed gets none", async () => {
  const { holdfast } = browser.tab(), autosave = holdfast.createAutoSave(() => "text");
  for (const source of [holdfast, autosave]) {
    const calls = { again: 0, after: 0 };
    const again = () => {
      if (++calls.again > 1000) return; // it never ends otherwise
      stop();
      stop = source.subscribe(again);
      remove();
    };
    let stop = source.subscribe(again);
    const remove = source.subscribe(() => { calls.after++; });
    let events = 0;
    source.subscribe(() => { events++; });
    if (source === autosave) await browser.until(autosave.ready);
    else await browser.until(holdfast.acquireProjectLock({ path: ["a"] }));
    await browser.settle();
    assert.ok(events > 1);
    assert.deepEqual(calls, { again: events, after: 0 });
    stop();
  }
});

test("options are checked as in a browser", () => {
  assert.throws(() => browser.tab({ root: "../outside" }), { code: "invalid-argument" });
});
