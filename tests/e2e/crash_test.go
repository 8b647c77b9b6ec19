package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
	"github.com/holdfast-dev/holdfast/tests/endings"
)

// crashes are the ways in which wasm/faults_js.go ends the whole runtime.
var crashes = []string{"goroutine", "exit", "memory", "stack", "trap"}

// When the Go runtime dies, every pending call is rejected, the page gets one event, and its locks are free for
// others at once. The same holds in a page and in a worker.
func TestCrash(t *testing.T) {
	w := world{browser.Start(t, whole), site(t, faultsDir)}
	eachHost(t, func(t *testing.T, host string) {
		other := w.tab(t, at(host, "crash-"+host))
		for _, crash := range crashes {
			t.Run(crash, func(t *testing.T) {
				tab := w.tab(t, at(host, "crash-"+host))
				testCrash(t, tab, other, crash)
				begun := "await start(" + at(host, "crash-"+host) + "); "
				tab.MustEval("events.length = 0; "+begun+"await (await hf.acquireProjectLock()).release(); await hf.close()", nil)
				assert.Equal(t, []string{"attempt", "acquired", "renew-scheduled", "release-requested", "released"}, kinds(told(t, tab)))
				tab.Quiet()
			})
		}
		t.Run("panic in a call", func(t *testing.T) { testPanicInCall(t, w.tab(t, at(host, "crash-"+host))) })
	})
}

// makePending begins calls of every kind in the tab, and has the other tab wait for its locks.
func makePending(tab, other *browser.Tab) {
	tab.MustEval(`
		globalThis.reasons = []
		const onReadonly = e => reasons.push(e.reason)
		lease = await hf.acquireProjectLock({heartbeatIntervalMs: 100, ttlMs: 5000, onReadonly})
		let inside
		const running = new Promise(done => inside = done)
		const wait = {backoff: {initialDelayMs: 600000, maxDelayMs: 600000, maxRetries: 0}}
		const pending = [
			hf.locks.request('held', () => { inside(); return new Promise(() => {}) }),
			hf.locks.request('held', () => {}),
			hf.acquireProjectLock({...wait, onReadonly}),
			hf.acquireProjectLock({...wait, signal: (globalThis.stop = new AbortController).signal}),
			hf.withProjectLock(() => {}, wait),
		].map(failure)
		await running`, nil)
	tab.WaitFor("count('renewed') > 0 && count('waiting') === 3 && (await locks()).held === 2 && (await locks()).pending === 4", browser.Limit)
	other.MustEval(`globalThis.got = 0; result = Promise.all([
		hf.acquireProjectLock({backoff: {maxRetries: 0}}).then(l => lease = l),
		new Promise(done => navigator.locks.request('held', done))]).then(() => got = now()); 1`, nil)
	tab.WaitFor("(await locks()).pending === 6", browser.Limit)
}

func testCrash(t *testing.T, tab, other *browser.Tab, crash string) {
	makePending(tab, other)

	// While the page is busy, the worker renews the lease once more. The page receives that event later.
	tab.MustEval(fmt.Sprintf("events.length = 0; globalThis.begun = now(); while (now() < begun + 150); pending.push(failure(hf.acquireProjectLock({mode: 'fault:%s'}))); 1", crash), nil)
	failures := browser.Get[[]event](tab, "globalThis.died = 0; const failures = await Promise.all(pending); died = now(); failures")
	require.Len(t, failures, 6)
	for _, f := range failures {
		assert.Equal(t, "runtime-crashed", f["code"], "%v", f)
		assert.Equal(t, "ProjectLockError", f["name"])
		assert.Equal(t, false, f["retryable"])
		assert.Contains(t, f["message"], "openHoldfast", "the message says how to go on")
	}
	// Running out of memory takes a while; the time counts from the death.
	other.WaitFor("got", browser.Limit)
	latency := browser.Get[float64](other, "got") - browser.Get[float64](tab, "died")
	t.Logf("died after %.0f ms; free after further %.0f ms", browser.Get[float64](tab, "died - begun"), latency)
	assert.Less(t, latency, browser.Prompt)

	assertReadonlyOnce(t, tab)

	// The dead runtime still answers, and late calls do no harm.
	tab.MustEval("stop.abort()", nil)
	for _, call := range []string{"hf.acquireProjectLock()", "hf.renewProjectLock(lease)", "hf.inspect()", "hf.locks.query()", "hf.locks.request('x', () => {})"} {
		assert.Equal(t, "runtime-crashed", browser.Get[event](tab, "await failure("+call+")")["code"], call)
	}
	tab.MustEval("await lease.release(); await hf.close(); await hf.close()", nil)
	tab.WaitFor("(await locks()).held === 1", browser.Limit)
	other.MustEval("await lease.release()", nil)
	free(other)
	eventually(t, func() bool { return tab.Workers() == 0 }, "a worker is left")
}

// assertReadonlyOnce checks that the tab got one event of the crash, and that each lease and call ended because of it.
func assertReadonlyOnce(t *testing.T, tab *browser.Tab) {
	t.Helper()
	events := told(t, tab)
	for len(events) > 0 && (events[0].kind() == "renewed" || events[0].kind() == "renew-scheduled" || events[0]["warning"] == "heartbeat-delayed") { // from before the death
		events = events[1:]
	}
	require.Equal(t, []string{"readonly-entered"}, kinds(events))
	assert.Equal(t, "runtime-crashed", events[0]["reason"])
	assert.Equal(t, "runtime-crashed", events[0].code())
	assert.Equal(t, "runtime-crashed", browser.Get[string](tab, "lease.signal.reason.code"))
	assert.Equal(t, []string{"runtime-crashed", "runtime-crashed"}, browser.Get[[]string](tab, "reasons"), "once for each that asked")
}

// A panic inside one call rejects only that call.
func testPanicInCall(t *testing.T, tab *browser.Tab) {
	tab.MustEval("lease = await hf.acquireProjectLock({heartbeatIntervalMs: 50, ttlMs: 5000})", nil)
	f := browser.Get[event](tab, "const waits = failure(hf.locks.request(lease.resource, {ifAvailable: true}, lock => lock)); await failure(hf.acquireProjectLock({mode: 'fault:call'}))")
	assert.Equal(t, "runtime-crashed", f["code"])
	assert.Contains(t, f["message"], "planted")
	assert.Equal(t, event{"value": nil}, browser.Get[event](tab, "await waits"))
	beats := browser.Get[int](tab, "count('renewed')")
	tab.WaitFor(fmt.Sprintf("count('renewed') > %d + 2", beats), browser.Limit)
	assert.False(t, browser.Get[bool](tab, "lease.signal.aborted"))
	tab.MustEval("await lease.release(); await hf.close()", nil)
	assert.NotContains(t, kinds(told(t, tab)), "readonly-entered")
	tab.Quiet()
}

// Browsers report some failures of a worker without a message.
func TestWorkerFailsWithoutMessage(t *testing.T) {
	t.Parallel()
	w := world{browser.Start(t, quick), site(t, siteDir)}
	tab := w.tab(t, "")
	tab.MustEval(`
		const workers = [], Real = Worker
		globalThis.Worker = class extends Real { constructor(...args) { super(...args); workers.push(this) } }
		await start(`+at("worker", "silent failure")+`)
		lease = await hf.acquireProjectLock()
		workers[0].dispatchEvent(new Event('error', {cancelable: true}))`, nil)
	f := browser.Get[event](tab, "await failure(hf.acquireProjectLock())")
	assert.Equal(t, "runtime-crashed", f["code"])
	assert.Equal(t, "runtime-crashed: the Go runtime died (its worker failed and gave no reason); all leases are gone, call openHoldfast again", f["message"])
	tab.WaitFor("(await locks()).held === 0", browser.Limit)
	tab.Quiet()
}

// A page types on after its runtime has died. dispose() keeps that text and says so; what the page shows afterwards does not count.
func TestDisposeAfterACrashKeepsTheText(t *testing.T) {
	t.Parallel()
	w := world{browser.Start(t, whole), site(t, faultsDir)}
	eachHost(t, func(t *testing.T, host string) {
		for i, then := range []string{"", "autosave.markDirty()"} {
			root := fmt.Sprintf("crashed %s %d", host, i)
			tab := w.attacked(t, named(host, root, "Ann"), endings.Unsaved)
			tab.MustEval("type('typed'); hf.acquireProjectLock({mode: 'fault:exit'}).catch(() => {}); null", nil)
			tab.WaitFor("heard('readonly').length === 1", browser.Limit)
			tab.MustEval("type(' on'); result = await failure(autosave.dispose()); text = ''; "+then+"; await sleep(500); null", nil)
			assert.Equal(t, "runtime-crashed", browser.Get[event](tab, "result")["code"])
			next := w.attacked(t, named(host, root, "Ben"), endings.Unsaved)
			assert.NotEqual(t, "nowhere", browser.Get[string](next, "await places('typed on')"), "then %q", then)
			next.MustEval("await hf.close(); null", nil)
		}
	})
}

// A page types on after its runtime has died, and is left at once.
func TestTextTypedAfterACrashOutlivesThePage(t *testing.T) {
	t.Parallel()
	w := world{browser.Start(t, whole), site(t, faultsDir)}
	eachHost(t, func(t *testing.T, host string) {
		root := "left after a crash " + host
		tab := w.attacked(t, named(host, root, "Ann"), endings.Unsaved)
		tab.MustEval("type('typed'); hf.acquireProjectLock({mode: 'fault:exit'}).catch(() => {}); null", nil)
		tab.WaitFor("heard('readonly').length === 1", browser.Limit)
		tab.MustEval("await sleep(300); type(' on'); location.replace('/blank?left'); null", nil)
		tab.WaitFor("location.search === '?left'", browser.Limit)
		next := w.attacked(t, named(host, root, "Ben"), endings.Unsaved)
		assert.NotEqual(t, "nowhere", browser.Get[string](next, "await places('typed on')"))
		next.MustEval("await hf.close(); null", nil)
	})
}
