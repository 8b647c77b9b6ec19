// holdfast.serve without a browser: the term, its end, and what becomes of the calls.

import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { createTestHoldfast } from "holdfast/testing";

let browser, made;
beforeEach(() => {
  browser = createTestHoldfast();
  made = [];
});
afterEach(() => browser.close());

const never = () => new Promise(() => undefined);
const functions = {
  add: (id) => { made.push(id); return id; },
  never: (id) => { made.push(id); return never(); },
};

/** A tab that takes part in the service. */
function member(start = () => functions, name = "db", options) {
  const tab = browser.tab(options);
  const terms = [];
  const service = tab.holdfast.serve(name, (term) => { terms.push(term); return start(term); });
  return { tab, terms, service, call: (...args) => service.call(...args) };
}

const outcome = (promise) => promise.then((value) => value, (error) => error.code ?? error.message);
const until = (promise, limit) => browser.until(outcome(promise), limit);

test("one tab serves, every tab calls it, and the next one serves when it dies", async () => {
  const ann = member(), ben = member();
  assert.equal(await until(ann.call("add", 1)), 1);
  assert.equal(await until(ben.call("add", 2)), 2);
  assert.deepEqual([ann.service.serving, ben.service.serving], [true, false]);
  assert.equal(ben.service.token, ann.terms[0].token);
  ann.tab.crash();
  assert.equal(await until(ben.call("add", 3), 1000), 3);
  assert.ok(ben.service.serving && ben.terms[0].token > ann.terms[0].token);
  assert.deepEqual(made, [1, 2, 3]);
});

test("a call that was accepted is lost with its tab, and is not made again", async () => {
  const ann = member(), ben = member();
  await until(ben.call("add", 0));
  const lost = outcome(ben.call("never", 1));
  await browser.settle();
  assert.deepEqual(made, [0, 1]);
  ann.tab.crash();
  assert.equal(await until(lost), "call-lost");
  assert.deepEqual(made, [0, 1]);
});

test("a call that was not accepted is made in the next term", async () => {
  const ann = member(), ben = member();
  await until(ben.call("add", 0));
  ann.tab.suspend(); // it hears nothing
  const again = outcome(ben.call("add", 1));
  await browser.settle();
  assert.deepEqual(made, [0]);
  ann.tab.crash();
  assert.equal(await until(again), 1);
  assert.deepEqual(made, [0, 1]);
});

for (const [end, told, count] of [["crash", "call-lost", [0, 2]], ["cache", 1, [0, 1, 2]]]) {
  test(`a call that follows an answer at once counts as accepted, unless the tab says otherwise: ${end}`, async () => {
    const ann = member(), ben = member();
    await until(ben.call("add", 9));
    made.length = 0;
    const outcomes = ben.call("add", 0).then(() => { // in the task of the answer
      ann.tab.suspend();
      return Promise.all([outcome(ben.call("add", 1)), outcome(ben.call("add", 2))]);
    });
    await browser.settle();
    assert.deepEqual(made, [0]);
    if (end === "cache") ann.tab.resume();
    ann.tab[end]();
    assert.deepEqual(await browser.until(outcomes), [told, 2]);
    assert.deepEqual(made, count);
  });
}

test("a call that waits in a tab whose lock was stolen is made once, although that tab wakes after its successor has begun", async () => {
  const ann = member(), ben = member();
  await until(ben.call("add", 0));
  ann.tab.suspend();
  const call = outcome(ben.call("add", 1));
  await browser.settle();
  const term = new Promise((begun) => { ben.service.addEventListener("service:term", begun); });
  (await browser.faults.steal("project/services/db"))();
  await browser.until(term);
  await browser.advance(100);
  ann.tab.resume(); // its lease has not expired: it accepts the call, then learns of its loss
  const told = await until(call);
  await browser.settle();
  assert.deepEqual(made, [0, 1]);
  assert.equal(told, "call-lost");
  assert.equal(await until(ann.call("add", 2)), 2);
});

test("a frozen tab that nobody replaced starts again", async () => {
  const ann = member();
  await until(ann.call("add", 1));
  const call = outcome(ann.call("add", 2));
  await browser.faults.expire(ann.tab, 40_000);
  assert.equal(await until(call), 2);
  assert.equal(ann.terms.length, 2);
  assert.ok(ann.terms[0].signal.aborted && ann.terms[1].token > ann.terms[0].token);
  assert.deepEqual(made, [1, 2]);
});

test("a tab whose call is pending becomes the one that serves", async () => {
  const ann = member(), ben = member();
  await until(ben.call("add", 0));
  ann.tab.suspend();
  const calls = [1, 2, 3].map((id) => outcome(ben.call("add", id)));
  await browser.settle();
  ann.tab.crash();
  assert.deepEqual(await browser.until(Promise.all(calls)), [1, 2, 3]);
  assert.ok(ben.service.serving);
  assert.deepEqual(made, [0, 1, 2, 3], "in their order");
});

test("a tab that waited in the back/forward cache serves when its turn comes", async () => {
  const ann = member(), ben = member();
  await until(ben.call("add", 1));
  for (const id of [2, 3]) {
    ben.tab.cache();
    await browser.advance(1000);
    const call = outcome(ben.call("add", id));
    ben.tab.restore();
    assert.equal(await until(call), id);
  }
  ann.tab.crash();
  assert.equal(await until(ben.call("add", 4)), 4);
  assert.ok(ben.service.serving);
  ben.tab.cache();
  const cid = member();
  assert.equal(await until(cid.call("add", 5)), 5, "a tab in the cache serves no more");
  ben.tab.restore();
  assert.equal(await until(ben.call("add", 6)), 6);
  assert.deepEqual(made, [1, 2, 3, 4, 5, 6]);
});

test("a tab that goes into the back/forward cache while its service loads hears each message once", async () => {
  const ann = member();
  ann.tab.cache();
  await browser.settle();
  ann.tab.restore();
  await until(ann.call("add", 1));
  const ben = member();
  assert.equal(await until(ben.call("add", 2)), 2);
  assert.ok(ann.service.serving);
});

test("close answers what was accepted, and the next tab serves", async () => {
  let finish;
  const ann = member(() => ({ ...functions, later: () => new Promise((done) => { finish = done; }) })), ben = member();
  const later = outcome(ben.call("later"));
  await browser.settle();
  const closed = ann.service.close();
  const next = outcome(ben.call("add", 1));
  await browser.settle();
  assert.deepEqual(made, [], "nothing is accepted any more");
  finish("answered");
  assert.equal(await until(later), "answered");
  await browser.until(closed);
  assert.equal(await until(next), 1);
  assert.equal(ann.terms[0].signal.reason.code, "aborted");
  assert.equal(await until(ann.call("add", 2)), "aborted");
});

test("close waits a second for functions that never settle", async () => {
  const ann = member(), ben = member();
  const remote = outcome(ben.call("never", 1)), own = outcome(ann.call("never", 2));
  await browser.settle();
  await browser.until(ann.service.close(), 1500);
  assert.equal(await until(remote), "call-lost");
  assert.equal(await until(own), "aborted");
});

test("closing the Holdfast closes its services, also before they have begun", async () => {
  const ann = member(), ben = member();
  await until(ben.call("add", 1));
  await browser.until(ann.tab.holdfast.close());
  assert.equal(await until(ben.call("add", 2)), 2);
  const late = ann.tab.holdfast.serve("db", () => functions);
  assert.equal(await until(late.call("add", 3)), "aborted");
  const cid = member(), call = outcome(cid.call("add", 4));
  const closed = cid.tab.holdfast.close();
  assert.equal(await until(call), "aborted");
  await browser.until(closed);
});

test("a start that throws is tried again, here and in the next tab", async () => {
  let broken = true;
  const failures = [];
  const ann = member(() => { if (broken) throw Object.assign(new RangeError("no disk"), { code: "E1" }); return functions; });
  ann.service.addEventListener("service:failed", ({ detail }) => failures.push(detail.error.message));
  const error = await browser.until(ann.call("add", 1).catch((reason) => reason));
  assert.deepEqual([error.name, error.message, error.code], ["RangeError", "no disk", "E1"]);
  assert.equal(failures.length, 3);
  assert.ok(ann.terms.every(({ signal }) => signal.aborted));
  broken = false;
  assert.equal(await until(ann.call("add", 2)), 2, "a later attempt succeeds");

  const ben = member(), cid = member(() => { throw new Error("only here"); }, "other"), dan = member(undefined, "other");
  assert.equal(await until(dan.call("add", 3), 1000), 3, "the next tab can");
  assert.equal(await until(cid.call("add", 4)), 4);
  assert.equal(await until(ben.call("add", 5)), 5);
});

test("a start that hangs gives way after half a minute", async () => {
  const failures = [], ann = member(() => never()), ben = member();
  ann.service.addEventListener("service:failed", ({ detail }) => failures.push(detail.error.code));
  assert.equal(await until(ben.call("add", 1), 31_000), 1);
  assert.deepEqual(failures, ["acquire-timeout"]);
  assert.equal(ann.terms[0].signal.reason.code, "acquire-timeout");
});

test("a tab that closes while it starts gives way, and its late start is not used", async () => {
  let finish;
  const ann = member(() => new Promise((done) => { finish = () => done(functions); })), ben = member();
  await browser.settle();
  const call = outcome(ben.call("add", 1));
  await browser.until(ann.service.close());
  finish();
  assert.equal(await until(call), 1);
  assert.deepEqual([ann.service.serving, ben.service.serving], [false, true]);
});

for (const end of ["cache", "close"]) {
  test(`a tab whose term ends while it waits for the lock of the term does not serve: ${end}`, async () => {
    const ends = { cache: () => ann.tab.cache(), close: () => void ann.service.close() };
    const ann = member(() => { if (ann.terms.length === 1) ends[end](); return functions; });
    await browser.settle();
    assert.equal(ann.service.serving, false);
    const ben = member();
    assert.equal(await until(ben.call("add", 1)), 1);
    if (end === "cache") ann.tab.restore();
    await browser.settle();
    assert.equal(ann.service.serving, false);
    assert.equal(await until(ann.call("add", 2), 5000), end === "cache" ? 2 : "aborted");
  });
}

test("a service that a Holdfast begins while it closes does not begin", async () => {
  const { holdfast } = browser.tab();
  const closed = holdfast.close();
  let starts = 0;
  const late = holdfast.serve("db", () => { starts++; return functions; });
  assert.equal(await until(late.call("add", 1)), "aborted");
  await browser.until(closed);
  await browser.settle();
  assert.deepEqual([late.serving, starts], [false, 0]);
  assert.equal(await until(member().call("add", 2)), 2, "it holds no lock");
});

test("arguments are copied when the call is made, also before the service has begun", async () => {
  const { holdfast } = browser.tab(), { call } = holdfast.serve("db", () => ({ echo: (value) => value }));
  for (let n = 0; n < 2; n++) {
    const value = { n: 1, deep: { n: 1 } }, answer = call("echo", value);
    value.n = value.deep.n = 2;
    assert.deepEqual(await browser.until(answer), { n: 1, deep: { n: 1 } });
  }
});

test("arguments and results are structured clones, in the serving tab and in another", async () => {
  const echo = () => ({ echo: (value) => value }), ann = member(echo), ben = member(echo);
  const itself = { list: [new Date(5), /a/g, new Uint16Array([1])], map: new Map([[{ a: 1 }, new Set([1])]]) };
  itself.itself = itself;
  for (const { call } of [ann, ben]) {
    const got = await browser.until(call("echo", itself));
    assert.deepEqual(got, itself);
    assert.notEqual(got, itself);
  }
});

test("a stream that cannot be moved is refused, also after another one was given up", async () => {
  let broken = false;
  const ann = member(), ben = member(() => { throw new Error("not here"); });
  await until(ben.call("add", 1));
  const cid = member(() => { if (broken) throw new Error("no disk"); return functions; });
  await browser.settle();
  const first = outcome(ben.call("add", new ReadableStream()));
  await browser.settle();
  broken = true;
  ann.tab.crash();
  assert.ok(["not here", "no disk"].includes(await until(first, 2000)), "nobody can start the service");
  broken = false;
  assert.equal(await until(ben.call("add", 2), 2000), 2);
  assert.ok(cid.service.serving);
  assert.equal(await until(ben.call("add", new ReadableStream()), 10_000), "unsupported");
});

test("one page serves the same name twice as two tabs do", async () => {
  const { tab, service } = member();
  const twin = tab.holdfast.serve("db", () => functions);
  assert.equal(await until(service.call("add", 1)), 1);
  assert.equal(await until(twin.call("add", 2)), 2);
  assert.notEqual(service.serving, twin.serving);
  await browser.until(service.close());
  assert.equal(await until(twin.call("add", 3)), 3);
  assert.ok(twin.serving);
});

test("names and roots are services of their own, and a locked project does not stop them", async () => {
  const names = ["a", "A", "a/b", "a%2Fb", "..", "日本", "x".repeat(200)];
  const { holdfast } = browser.tab();
  const lease = await browser.until(holdfast.acquireProjectLock());
  for (const name of names) assert.equal(await until(holdfast.serve(name, () => ({ who: () => name })).call("who")), name);
  assert.equal(await browser.until(member(() => ({ who: () => "elsewhere" }), "a", { root: "other" }).call("who")), "elsewhere");
  await browser.until(lease.release());
});

test("wrong arguments reject with invalid-argument", async () => {
  const { holdfast } = browser.tab();
  for (const [name, start] of [["", () => ({})], [7, () => ({})], ["\ud800", () => ({})], ["x".repeat(201), () => ({})], ["a", {}]]) {
    assert.equal(await until(holdfast.serve(name, start).call("f")), "invalid-argument");
  }
  const { call } = member();
  for (const args of [["absent"], ["constructor"], ["hasOwnProperty"], [7], ["add", () => 1]]) assert.equal(await until(call(...args)), "invalid-argument", String(args[0]));
  assert.equal(await until(member(() => 7, "number").call("f")), "invalid-argument");
});
