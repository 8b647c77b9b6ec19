package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// A lease in JavaScript is an immutable snapshot with a signal that fires at its end.
func TestLease(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		tab := w.tab(t, at(host, "lease-"+host))
		t.Run("is a snapshot", func(t *testing.T) { testSnapshot(t, tab) })
		t.Run("signal after release", func(t *testing.T) { testReleased(t, tab) })
		t.Run("dispose", func(t *testing.T) { testDispose(t, tab) })
		t.Run("with", func(t *testing.T) { testWith(t, tab) })
		t.Run("events before promises", func(t *testing.T) { testEventsFirst(t, tab) })
		t.Run("listeners agree", func(t *testing.T) { testListenersAgree(t, tab) })
		t.Run("listener throws", func(t *testing.T) { testListenerThrows(t, tab) })
		free(tab)
	})
}

func testSnapshot(t *testing.T, tab *browser.Tab) {
	tab.MustEval(`
		lease = await hf.acquireProjectLock({heartbeatIntervalMs: 5000, ttlMs: 20_000})
		const old = JSON.stringify(lease)
		const before = now()
		while (now() < before + 20) await hf.inspect()
		const renewed = await hf.renewProjectLock(lease)
		const thrown = fn => { try { 'use strict'; fn() } catch (e) { return e.name } }`, nil)
	assert.True(t, browser.Get[bool](tab, "JSON.stringify(lease) === old && lease !== renewed"))
	assert.GreaterOrEqual(t, browser.Get[float64](tab, "renewed.expiresAt - lease.expiresAt"), 19.0)
	assert.GreaterOrEqual(t, browser.Get[float64](tab, "renewed.nextHeartbeatAt - lease.nextHeartbeatAt"), 19.0)
	assert.True(t, browser.Get[bool](tab, `['leaseId', 'token', 'acquiredAt', 'signal'].every(key => lease[key] === renewed[key])`))
	assert.True(t, browser.Get[bool](tab, `Object.isFrozen(lease) && Object.isFrozen(renewed) && !('signal' in JSON.parse(old))`))
	assert.True(t, browser.Get[bool](tab, `Object.isFrozen(lease.paths) && Object.isFrozen(lease.paths[0])`), "the paths are frozen to their depth")
	// An old snapshot is enough to release it.
	tab.MustEval("await lease.release()", nil)
	assert.True(t, browser.Get[bool](tab, "renewed.signal.aborted"))
}

func testReleased(t *testing.T, tab *browser.Tab) {
	tab.MustEval(`
		lease = await hf.acquireProjectLock()
		let seen = []
		const stop = hf.subscribe(e => seen.push([e.type, lease.signal.aborted]))
		await lease.release()
		stop()`, nil)
	assert.Equal(t, []any{[]any{"lock:release-requested", true}, []any{"lock:released", true}}, browser.Get[[]any](tab, "seen"))
	assert.Equal(t, "AbortError", browser.Get[string](tab, "lease.signal.reason.name"), "no failure, so no ProjectLockError")
	assert.False(t, browser.Get[bool](tab, "lease.signal.reason instanceof ProjectLockError"))
	// A second release is no error and fires no event. A renewal then is an error.
	tab.MustEval("events.length = 0; await lease.release(); await hf.releaseProjectLock(lease, {force: true})", nil)
	assert.Equal(t, "lease-lost", browser.Get[event](tab, "await failure(hf.renewProjectLock(lease))")["code"])
	assert.Empty(t, browser.Get[[]string](tab, "types()"))
	assert.Equal(t, "invalid-argument", browser.Get[event](tab, "await failure(hf.releaseProjectLock({...lease}))")["code"])
	assert.Equal(t, "release", browser.Get[event](tab, "await failure(hf.releaseProjectLock(null))")["operation"])
}

func testDispose(t *testing.T, tab *browser.Tab) {
	tab.MustEval(`
		events.length = 0
		const block = async () => {
			await using lease = await hf.acquireProjectLock({ifAvailable: true})
			if (lease.signal.aborted) throw new Error('aborted under its owner')
			return lease
		}
		lease = await block()`, nil)
	assert.Equal(t, []string{"attempt", "acquired", "renew-scheduled", "release-requested", "released"}, browser.Get[[]string](tab, "types()"))
	assert.True(t, browser.Get[bool](tab, "lease.signal.aborted"))
}

func testWith(t *testing.T, tab *browser.Tab) {
	tab.MustEval(`
		events.length = 0
		result = await hf.withProjectLock(async l => {
			while (count('renewed') < 2) await hf.inspect()
			return {held: (await locks()).held, aborted: l.signal.aborted, value: new Map()}
		}, {heartbeatIntervalMs: 50, ttlMs: 20_000})`, nil)
	assert.Equal(t, 1, browser.Get[int](tab, "result.held"))
	assert.True(t, browser.Get[bool](tab, "result.value instanceof Map && !result.aborted"), "the value is the one of the executor")
	types := browser.Get[[]string](tab, "types()")
	assert.Equal(t, []string{"release-requested", "released"}, types[len(types)-2:])

	tab.MustEval(`
		const bad = new RangeError('mine')
		result = await hf.withProjectLock(() => { throw bad }).then(() => 'fulfilled', e => e)`, nil)
	assert.True(t, browser.Get[bool](tab, "result === bad"), "the error is the one of the executor")
	assert.Equal(t, 0, browser.Get[int](tab, "(await locks()).held"))

	tab.MustEval(`result = await hf.withProjectLock(l => { lease = l; throw bad }, {releaseOnError: false}).catch(e => e)`, nil)
	assert.Equal(t, 1, browser.Get[int](tab, "(await locks()).held"), "releaseOnError: false")
	tab.MustEval("await lease.release()", nil)
}

// The events of a call fire before its promise settles.
func testEventsFirst(t *testing.T, tab *browser.Tab) {
	tab.MustEval(`
		events.length = 0
		lease = await hf.acquireProjectLock(); const acquired = types().at(-1)
		await hf.renewProjectLock(lease); const after = types().slice(-2)
		await hf.acquireProjectLock({ifAvailable: true}).catch(() => {}); const denied = types().at(-1)
		await lease.release(); const released = types().at(-1)`, nil)
	assert.Equal(t, []string{"renew-scheduled", "renewed", "renew-scheduled", "readonly-entered", "released"},
		browser.Get[[]string](tab, "[acquired, ...after, denied, released]"))
}

// EventTarget and subscribe deliver the same event objects in the same order.
func testListenersAgree(t *testing.T, tab *browser.Tab) {
	tab.MustEval(`
		const heard = [], first = [], second = []
		const record = e => heard.push(e.detail)
		const all = ['attempt', 'waiting', 'acquired', 'renew-scheduled', 'renewed', 'release-requested', 'released', 'error', 'warning', 'readonly-entered'].map(t => 'lock:' + t)
		for (const type of all) hf.addEventListener(type, record)
		const stopFirst = hf.subscribe(e => first.push(e)), twice = e => second.push(e)
		const stopSecond = hf.subscribe(twice), stopAgain = hf.subscribe(twice)
		stopAgain()
		lease = await hf.acquireProjectLock({heartbeatIntervalMs: 30, ttlMs: 20_000})
		await hf.acquireProjectLock({backoff: {initialDelayMs: 20, maxRetries: 1}}).catch(() => {})
		await lease.release()
		const n = first.length
		stopFirst(); stopSecond(); stopFirst()
		for (const type of all) hf.removeEventListener(type, record)
		await (await hf.acquireProjectLock()).release()`, nil)
	require.Greater(t, browser.Get[int](tab, "n"), 10)
	assert.True(t, browser.Get[bool](tab, "heard.length === n && second.length === n && first.length === n && first.every((e, i) => e === heard[i] && e === second[i])"))
	assert.True(t, browser.Get[bool](tab, "first.every(e => Object.isFrozen(e))"))
}

// A listener that throws affects no other listener, and the page receives its error like any other.
func testListenerThrows(t *testing.T, tab *browser.Tab) {
	tab.MustEval(`
		globalThis.expected = true
		events.length = uncaught.length = 0
		const bads = [hf.subscribe(() => { throw new Error('bad subscriber') })]
		const worse = () => { throw new Error('bad listener') }
		hf.addEventListener('lock:acquired', worse)
		const late = []
		bads.push(hf.subscribe(e => late.push(e.type)))
		hf.addEventListener('lock:acquired', () => late.push('target'), {once: true})
		lease = await hf.acquireProjectLock()
		await lease.release()
		const denied = new Promise(done => navigator.locks.request('holdfast:' + lease.resource.slice(9), async () => {
			done(await failure(hf.acquireProjectLock({ifAvailable: true, onReadonly() { throw new Error('bad onReadonly') }})))
		}))
		result = await denied`, nil)
	want := []string{"attempt", "acquired", "renew-scheduled", "release-requested", "released", "attempt", "error", "readonly-entered"}
	assert.Equal(t, want, browser.Get[[]string](tab, "types()"))
	assert.Equal(t, len(want)+1, browser.Get[int](tab, "late.length"))
	assert.Equal(t, "acquire-denied", browser.Get[event](tab, "result")["code"])
	tab.WaitFor("uncaught.length >= 10", browser.Limit)
	reported := browser.Get[map[string]int](tab, "uncaught.reduce((n, m) => ({...n, [m.replace('Uncaught Error: ', '')]: (n[m] ?? 0) + 1}), {})")
	assert.Equal(t, map[string]int{"bad subscriber": 8, "bad listener": 1, "bad onReadonly": 1}, reported)
	tab.MustEval("bads.forEach(stop => stop()); hf.removeEventListener('lock:acquired', worse); globalThis.expected = false", nil)
	tab.Quiet()
}
