package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// strategies runs test with each strategy, in each host that supports it.
func strategies(t *testing.T, test func(t *testing.T, options func(name string) string)) {
	for _, c := range []struct{ strategy, host string }{{"web-lock", "worker"}, {"web-lock", "page"}, {"file-lock", "worker"}} {
		t.Run(c.strategy+"/"+c.host, func(t *testing.T) {
			test(t, func(name string) string {
				return fmt.Sprintf("{strategy: %q, host: %q, root: %q, ownerName: %q}", c.strategy, c.host, "tree-"+c.strategy+c.host, name)
			})
		})
	}
}

// patient waits without a limit of retries; a forgotten waiter fails the test at its timeout.
const patient = "backoff: {maxRetries: 0}, timeoutMs: 20000"

// This is the control experiment: two tabs that take two nested resources in different orders deadlock, and one of
// them gets the error. With paths they never deadlock.
func TestDeadlockBetweenTabs(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	strategies(t, func(t *testing.T, options func(string) string) {
		a, b := w.tab(t, options("Ann")), w.tab(t, options("Ben"))
		for _, tab := range []*browser.Tab{a, b} {
			tab.MustEval(`
				const at = (...ids) => ids.map(id => ['u1', 'a1', id])
				const one = (id, more) => hf.acquireProjectLock({path: at(id)[0], `+patient+`, ...more})
				globalThis.outcome = ''`, nil)
		}
		a.MustEval("globalThis.outer = await one('r1'); null", nil)
		b.MustEval("globalThis.outer = await one('r2'); null", nil)
		a.MustEval("one('r2', {within: outer}).then(l => { globalThis.inner = l; outcome = 'granted' }, e => { outcome = e.code }); null", nil)
		a.WaitFor("types().includes('waiting')", browser.Limit)
		b.MustEval(`globalThis.began = now()
			one('r1', {within: outer}).then(l => { globalThis.inner = l; outcome = 'granted' }, e => { outcome = e.code; globalThis.ended = now() }); null`, nil)
		b.WaitFor("outcome", browser.Limit)
		assert.Equal(t, "deadlock", browser.Get[string](b, "outcome"), "the waiter that closed the cycle gets the error")
		assert.Less(t, browser.Get[float64](b, "ended - began"), browser.Prompt)
		t.Logf("told after %.0f ms", browser.Get[float64](b, "ended - began"))
		assert.True(t, browser.Get[bool](b, "events.find(e => e.type === 'lock:error' && e.error.code === 'deadlock').retryable"))
		assert.Empty(t, browser.Get[string](a, "outcome"), "one victim")
		b.MustEval("await outer.release()", nil)
		a.WaitFor("outcome === 'granted'", browser.Limit)
		assert.Equal(t, browser.Get[string](a, "outer.leaseId"), browser.Get[string](a, "inner.within"))
		a.MustEval("await inner.release(); await outer.release()", nil)

		// The same two tabs use paths, many times, at the same time.
		for tab, ids := range map[*browser.Tab]string{a: "'r1', 'r2'", b: "'r2', 'r1'"} {
			tab.MustEval(`globalThis.rounds = 0; outcome = '';
				(async () => { for (; rounds < 25; rounds++) await hf.withProjectLock(() => {}, {paths: at(`+ids+`), `+patient+`}) })()
				.then(() => { outcome = 'all' }, e => { outcome = e.message }); null`, nil)
		}
		for _, tab := range []*browser.Tab{a, b} {
			tab.WaitFor("outcome", browser.Limit)
			assert.Equal(t, "all", browser.Get[string](tab, "outcome"))
			tab.MustEval("await hf.close()", nil)
			tab.Quiet()
		}
	})
}

func TestTree(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	strategies(t, func(t *testing.T, options func(string) string) {
		a, b := w.tab(t, options("Ann")), w.tab(t, options("Ben"))
		a.MustEval("lease = await hf.acquireProjectLock({path: ['u1', 'a1', 'r1']})", nil)
		assert.Equal(t, [][]string{{"u1", "a1", "r1"}}, browser.Get[[][]string](a, "lease.paths"))
		assert.Contains(t, browser.Get[string](a, "lease.resource"), "//u1/a1/r1")
		denied := func(options string) string {
			return browser.Get[string](b, `await hf.acquireProjectLock({ifAvailable: true, `+options+`}).then(async l => { await l.release(); return 'granted' }, e => e.code)`)
		}
		no := []string{"acquire-denied", "fallback-conflict"}
		assert.Contains(t, no, denied("path: ['u1', 'a1', 'r1']"))
		assert.Contains(t, no, denied("path: ['u1']"))
		assert.Contains(t, no, denied("paths: [['u2'], ['u1', 'a1']]"))
		assert.Contains(t, no, denied("path: []"), "the project as a whole")
		assert.Equal(t, "granted", denied("path: ['u1', 'a1', 'r2']"))
		assert.Equal(t, "granted", denied("path: ['u1', 'a1/r1']"), "no component collides with a separator")
		assert.Equal(t, "granted", denied("mode: 'shared', path: ['u1', 'a1']"))
		assert.Equal(t, "reentrant", browser.Get[string](a, "(await failure(hf.acquireProjectLock({path: ['u1', 'a1', 'r1'], within: lease}))).code"))
		assert.Equal(t, "reentrant", browser.Get[string](a, "(await failure(hf.acquireProjectLock({path: ['u1'], within: lease}))).code"))

		// Outside the chain it queues, and gets one warning.
		a.MustEval(`events.length = 0
			result = hf.acquireProjectLock({path: ['u1'], `+patient+`}); null`, nil)
		a.WaitFor("types().includes('warning') && (await hf.locks.query()).pending.length > 0", browser.Limit)
		b.MustEval("result = hf.acquireProjectLock({path: ['u1', 'a1'], "+patient+"}); null", nil)
		b.WaitFor("types().includes('waiting')", browser.Limit)
		assertInspected(t, a, b)
		a.MustEval("await lease.release(); lease = await result", nil)
		assert.Equal(t, "self-wait", browser.Get[string](a, "events.filter(e => e.type === 'lock:warning' && e.warning === 'self-wait').map(e => e.warning).join()"))
		a.MustEval("await lease.release()", nil)
		b.MustEval("lease = await result; await lease.release(); await hf.close()", nil)
		a.MustEval("await hf.close()", nil)
		a.Quiet()
		b.Quiet()
	})
}

// inspected waits until inspect() names every holder and waiter, and leaves its result in `seen`. A busy tab does not answer in time, and is
// then one without a name.
func inspected(tab *browser.Tab) {
	tab.WaitFor("globalThis.seen = await hf.inspect(), [...seen.held, ...seen.pending].every(({leaseId}) => leaseId)", browser.Limit)
}

// assertInspected checks that both tabs show the lease of a, and both waiters in order.
func assertInspected(t *testing.T, a, b *browser.Tab) {
	t.Helper()
	type info struct {
		OwnerID, OwnerName, Mode, LeaseID, Within string
		Token, Since                              int64
		Paths                                     [][]string
		WaitsFor                                  []string
	}
	owners := []string{browser.Get[string](a, "hf.ownerId"), browser.Get[string](b, "hf.ownerId")}
	for _, tab := range []*browser.Tab{a, b} {
		inspected(tab)
		held := browser.Get[[]info](tab, "seen.held")
		if assert.Len(t, held, 1) {
			assert.Equal(t, owners[0], held[0].OwnerID)
			assert.Equal(t, "Ann", held[0].OwnerName)
			assert.Equal(t, browser.Get[int64](a, "lease.token"), held[0].Token)
			assert.Equal(t, [][]string{{"u1", "a1", "r1"}}, held[0].Paths)
			assert.NotZero(t, held[0].Since)
		}
		pending := browser.Get[[]info](tab, "seen.pending")
		if assert.Len(t, pending, 2) {
			assert.Equal(t, owners[0], pending[0].OwnerID)
			assert.Equal(t, owners[1], pending[1].OwnerID)
			assert.Equal(t, []string{owners[0]}, pending[0].WaitsFor)
			assert.Contains(t, pending[1].WaitsFor, owners[0])
			assert.Equal(t, "exclusive", pending[1].Mode)
			assert.NotZero(t, pending[1].Since)
		}
	}
}

// The slot of a crashed tab goes to the first tab in the queue.
func TestSlots(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	strategies(t, func(t *testing.T, options func(string) string) {
		var tabs []*browser.Tab
		for i := range 4 {
			tab := w.tab(t, options(fmt.Sprint("tab ", i)))
			tab.MustEval("globalThis.got = 0; result = hf.acquireProjectLock({path: ['pool'], slots: 2, "+patient+"}); result.then(l => { lease = l; got = now() }); null", nil)
			if i < 2 {
				tab.WaitFor("got", browser.Limit)
				assert.Equal(t, i, browser.Get[int](tab, "lease.slot"))
			} else {
				tab.WaitFor("types().includes('waiting')", browser.Limit)
				tab.WaitFor(fmt.Sprintf("(await hf.inspect()).pending.length === %d", i-1), browser.Limit)
			}
			tabs = append(tabs, tab)
		}
		tabs[1].Crash()
		tabs[2].WaitFor("got", browser.Limit)
		assert.Equal(t, 1, browser.Get[int](tabs[2], "lease.slot"))
		assert.Zero(t, browser.Get[float64](tabs[3], "got"))
		tabs[0].MustEval("await lease.release()", nil)
		tabs[3].WaitFor("got", browser.Limit)
		assert.Equal(t, 0, browser.Get[int](tabs[3], "lease.slot"))
		for _, tab := range []*browser.Tab{tabs[0], tabs[2], tabs[3]} {
			tab.MustEval("await hf.close()", nil)
			tab.Quiet()
		}
	})
}

// The lease of AutoSave covers the project: the page can lock more below it, and others are excluded.
func TestWithinAutoSave(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	a, b := w.tab(t, "{root: 'within-autosave'}"), w.tab(t, "{root: 'within-autosave'}")
	a.MustEval(`
		const saver = await hf.initAutoSave(() => 'text')
		lease = await hf.acquireProjectLock({path: ['u1'], within: saver.lease})`, nil)
	assert.True(t, browser.Get[bool](a, "lease.within === saver.lease.leaseId"))
	assert.Equal(t, "reentrant", browser.Get[string](a, "(await failure(hf.acquireProjectLock({within: saver.lease}))).code"))
	assert.Equal(t, "acquire-denied", browser.Get[string](b, "(await failure(hf.acquireProjectLock({path: ['u2'], ifAvailable: true}))).code"))
	a.MustEval("await saver.dispose()", nil)
	a.WaitFor("lease.signal.aborted && lease.signal.reason.code === 'lease-lost'", browser.Limit)
	b.MustEval("await (await hf.acquireProjectLock({path: ['u1'], "+patient+"})).release(); await hf.close()", nil)
	a.MustEval("await hf.close()", nil)
	a.Quiet()
	b.Quiet()
}
