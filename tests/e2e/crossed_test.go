package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// crossed runs test with two tabs of one project with different strategies: the first one holds, the second one
// requests.
func crossed(t *testing.T, test func(t *testing.T, a, b *browser.Tab)) {
	w := open(t, quick)
	for _, c := range []struct{ first, second string }{{"web-lock", "file-lock"}, {"file-lock", "web-lock"}, {"file-lock", "file-lock"}} {
		t.Run(c.first+"+"+c.second, func(t *testing.T) {
			eachHost(t, func(t *testing.T, host string) {
				begin := func(strategy, name string) *browser.Tab {
					return w.tab(t, fmt.Sprintf("{strategy: %q, host: %q, root: %q, ownerName: %q}", strategy, host, "crossed-"+c.first+c.second+host, name))
				}
				a, b := begin(c.first, "Ann"), begin(c.second, "Ben")
				test(t, a, b)
				for _, tab := range []*browser.Tab{a, b} {
					tab.MustEval("await hf.close()", nil)
					tab.Quiet()
				}
				free(a)
			})
		})
	}
}

// refused are the error codes of a lock that another owner holds.
var refused = []string{"acquire-denied", "fallback-conflict"}

// tried returns "granted", or the code with which an acquisition that does not wait was refused.
func tried(tab *browser.Tab, options string) string {
	return browser.Get[string](tab, "await hf.acquireProjectLock({ifAvailable: true, "+options+"}).then(async l => { await l.release(); return 'granted' }, e => e.code)")
}

// A project lease of one strategy excludes the other strategy, and a release hands over at once.
func TestStrategiesExcludeEachOther(t *testing.T) {
	t.Parallel()
	crossed(t, func(t *testing.T, a, b *browser.Tab) {
		a.MustEval("lease = await hf.acquireProjectLock()", nil)
		assert.Contains(t, refused, tried(b, ""), "exclusive")
		assert.Contains(t, refused, tried(b, "mode: 'shared'"), "shared under exclusive")
		assert.Contains(t, refused, tried(b, "path: ['u1']"), "a place of the project")

		inspected(b)
		held := browser.Get[[]map[string]any](b, "seen.held")
		if assert.Len(t, held, 1) {
			assert.Equal(t, "Ann", held[0]["ownerName"])
		}
		b.MustEval("globalThis.got = 0; result = hf.acquireProjectLock({"+patient+"}); result.then(l => { lease = l; got = now() }); null", nil)
		b.WaitFor("types().includes('waiting')", browser.Limit)
		a.WaitFor("(await hf.inspect()).pending.length === 1", browser.Limit)
		a.MustEval("globalThis.token = lease.token; await lease.release(); null", nil)
		b.WaitFor("got", browser.Limit)
		assert.Greater(t, browser.Get[float64](b, "lease.token"), browser.Get[float64](a, "token"))
		b.MustEval("await lease.release()", nil)

		a.MustEval("lease = await hf.acquireProjectLock({mode: 'shared'})", nil)
		assert.Equal(t, "granted", tried(b, "mode: 'shared'"))
		assert.Contains(t, refused, tried(b, ""))
		a.MustEval("await lease.release()", nil)
	})
}

// Waiters are served in the order of their requests, whatever their strategy.
func TestStrategiesShareOneQueue(t *testing.T) {
	t.Parallel()
	crossed(t, func(t *testing.T, a, b *browser.Tab) {
		a.MustEval("lease = await hf.acquireProjectLock()", nil)
		for i, tab := range []*browser.Tab{b, a, b, a} {
			tab.MustEval(fmt.Sprintf("globalThis.order ??= []; globalThis.all ??= []; all.push(hf.withProjectLock(async () => { order.push([now(), %d]) }, {%s})); null", i, patient), nil)
			b.WaitFor(fmt.Sprintf("(await hf.inspect()).pending.length === %d", i+1), browser.Limit)
		}
		a.MustEval("await lease.release(); await Promise.all(all)", nil)
		b.MustEval("await Promise.all(all)", nil)
		type entry = [2]float64
		mine, others := browser.Get[[]entry](a, "order"), browser.Get[[]entry](b, "order")
		for i, e := range []entry{others[0], mine[0], others[1], mine[1]} {
			assert.Equal(t, float64(i), e[1])
			if i > 0 {
				before := []entry{others[0], mine[0], others[1]}[i-1]
				assert.Less(t, before[0], e[0])
			}
		}
	})
}

func TestStrategiesExcludeEachOtherOnPlacesAndSlots(t *testing.T) {
	t.Parallel()
	crossed(t, func(t *testing.T, a, b *browser.Tab) {
		a.MustEval("lease = await hf.acquireProjectLock({path: ['u1', 'a1']})", nil)
		assert.Contains(t, refused, tried(b, "path: ['u1', 'a1']"))
		assert.Contains(t, refused, tried(b, "path: ['u1', 'a1', 'r1']"))
		assert.Contains(t, refused, tried(b, "path: ['u1']"))
		assert.Contains(t, refused, tried(b, ""))
		assert.Equal(t, "granted", tried(b, "path: ['u1', 'a2']"))
		a.MustEval("await lease.release()", nil)

		// Each takes one of two slots. A third waits for the first free slot.
		a.MustEval("lease = await hf.acquireProjectLock({path: ['pool'], slots: 2})", nil)
		b.MustEval("lease = await hf.acquireProjectLock({path: ['pool'], slots: 2})", nil)
		assert.ElementsMatch(t, []int{0, 1}, []int{browser.Get[int](a, "lease.slot"), browser.Get[int](b, "lease.slot")})
		assert.Contains(t, refused, tried(b, "path: ['pool'], slots: 2"))
		b.MustEval("globalThis.got = 0; result = hf.acquireProjectLock({path: ['pool'], slots: 2, "+patient+"}); result.then(() => { got = now() }); null", nil)
		b.WaitFor("(await hf.inspect()).pending.length === 1", browser.Limit)
		a.MustEval("globalThis.slot = lease.slot; await lease.release(); null", nil)
		b.WaitFor("got", browser.Limit)
		assert.Equal(t, browser.Get[int](a, "slot"), browser.Get[int](b, "(await result).slot"))
		b.MustEval("await lease.release(); await (await result).release()", nil)
	})
}

// A deadlock across strategies is reported, like one within a strategy.
func TestDeadlockAcrossStrategies(t *testing.T) {
	t.Parallel()
	crossed(t, func(t *testing.T, a, b *browser.Tab) {
		a.MustEval("globalThis.outcome = ''; lease = await hf.acquireProjectLock({path: ['one']})", nil)
		b.MustEval("globalThis.outcome = ''; lease = await hf.acquireProjectLock({path: ['two']})", nil)
		a.MustEval("hf.acquireProjectLock({path: ['two'], within: lease, "+patient+"}).then(async l => { await l.release(); outcome = 'granted' }, e => { outcome = e.code }); null", nil)
		a.WaitFor("types().includes('waiting')", browser.Limit)
		b.MustEval("hf.acquireProjectLock({path: ['one'], within: lease, "+patient+"}).then(async l => { await l.release(); outcome = 'granted' }, e => { outcome = e.code }); null", nil)
		b.WaitFor("outcome", browser.Limit)
		assert.Equal(t, "deadlock", browser.Get[string](b, "outcome"))
		b.MustEval("await lease.release()", nil)
		a.WaitFor("outcome === 'granted'", browser.Limit)
		a.MustEval("await lease.release()", nil)
	})
}

// A page whose lock is stolen gets an event, and no longer holds anything that excludes the next page.
func TestStealAcrossStrategies(t *testing.T) {
	t.Parallel()
	crossed(t, func(t *testing.T, a, b *browser.Tab) {
		for _, options := range []string{"", "path: ['u1']"} {
			a.MustEval("lease = await hf.acquireProjectLock({"+options+"})", nil)
			b.MustEval("globalThis.mine = await hf.acquireProjectLock({steal: true, "+options+"}); null", nil)
			a.WaitFor("lease.signal.aborted", browser.Limit)
			assert.Equal(t, "lease-lost", browser.Get[string](a, "lease.signal.reason.code"))
			assert.Contains(t, refused, tried(a, options))
			a.MustEval("result = hf.acquireProjectLock({"+options+"}); null", nil)
			b.MustEval("await mine.release()", nil)
			a.MustEval("await (await result).release()", nil)
		}
	})
}

// holdfast.locks of both strategies and navigator.locks share one set of names.
func TestLocksByNameAcrossStrategies(t *testing.T) {
	t.Parallel()
	crossed(t, func(t *testing.T, a, b *browser.Tab) {
		const hold = `globalThis.release = undefined; globalThis.ended = undefined
			await new Promise(granted => { ended = %s.request('a name', {mode: %q}, () => { granted(); return new Promise(done => { release = done }) }) })
			null`
		available := func(mode string) bool {
			return browser.Get[bool](b, fmt.Sprintf("await hf.locks.request('a name', {ifAvailable: true, mode: %q}, lock => lock !== null)", mode))
		}
		for _, locks := range []string{"hf.locks", "navigator.locks"} {
			a.MustEval(fmt.Sprintf(hold, locks, "exclusive"), nil)
			assert.False(t, available("exclusive"), locks)
			assert.False(t, available("shared"), locks)
			for _, tab := range []*browser.Tab{a, b} {
				assert.Equal(t, 1, browser.Get[int](tab, "(await hf.locks.query()).held.filter(({name}) => name === 'a name').length"))
			}
			b.MustEval("globalThis.got = 0; result = hf.locks.request('a name', () => { got = now() }); null", nil)
			b.WaitFor("(await hf.locks.query()).pending.length === 1", browser.Limit)
			a.MustEval("release(); await ended", nil)
			b.MustEval("await result", nil)
			a.MustEval(fmt.Sprintf(hold, locks, "shared"), nil)
			assert.True(t, available("shared"), locks)
			assert.False(t, available("exclusive"), locks)
			a.MustEval("release(); await ended", nil)

			// The callback of a stolen lock continues to run, but its lock is free for the next request.
			a.MustEval(fmt.Sprintf(hold, locks, "exclusive"), nil)
			a.MustEval("globalThis.why = ended.catch(e => e.name); null", nil)
			assert.Equal(t, 42, browser.Get[int](b, "await hf.locks.request('a name', {steal: true}, () => 42)"))
			assert.Equal(t, "AbortError", browser.Get[string](a, "await why"))
			assert.Equal(t, 43, browser.Get[int](b, "await hf.locks.request('a name', () => 43)"))
			a.MustEval("release(); null", nil)
		}
	})
}

// A context without Web Locks uses only the file, and pages that hold both exclude it.
func TestFileAloneWhereWebLocksAreMissing(t *testing.T) {
	t.Parallel()
	const remove = "Object.defineProperty(navigator, 'locks', {value: undefined});"
	with := open(t, quick)
	without := world{with.Browser, browser.Serve(t, served(t, remove))}
	eachHost(t, func(t *testing.T, host string) {
		root := "alone-" + host
		a := without.tab(t, "")
		a.MustEval("const browserLocks = navigator.locks; "+remove+" await start("+filesAt(host, root, "Ann")+")", nil)
		a.MustEval("lease = await hf.acquireProjectLock()", nil)
		assert.Equal(t, 0, browser.Get[int](a, "(await browserLocks.query()).held.length"))
		a.MustEval("await lease.release()", nil)
		a.MustEval("await hf.locks.request('n', lock => lock.name); null", nil)
		a.MustEval("await hf.close()", nil)
		a.Quiet()
	})
}
