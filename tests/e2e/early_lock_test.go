package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// An acquisition holds the browser's lock from its call on, while the Wasm is loading. Its token and record come with
// the lease.
func TestGrantWhileTheRuntimeLoads(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	for _, c := range []struct{ options, name, mode string }{
		{"{}", "", "exclusive"}, {"{path: ['a', 'b/c']}", "//a/b%2Fc", "exclusive"}, {"{mode: 'shared'}", "", "shared"},
		{"{path: ['a'], mode: 'shared'}", "//a", "shared"},
	} {
		eachHost(t, func(t *testing.T, host string) {
			root := fmt.Sprintf("early lease %s %d%s", host, len(c.name), c.mode)
			later, arrive := n.gated(named(host, root, "Ann"))
			tab, other := w.earlyTab(t, later), w.earlyTab(t, named(host, root, "Ben"))
			tab.MustEval("globalThis.got = hf.acquireProjectLock("+c.options+"); null", nil)
			tab.WaitFor(fmt.Sprintf("(await navigator.locks.query()).held.some(({name, mode}) => name === 'holdfast:%s%s' && mode === '%s')", root, c.name, c.mode), browser.Limit)
			other.MustEval(fmt.Sprintf(grabs, "holdfast:"+root+c.name), nil)
			f := browser.Get[event](other, "await failure(hf.acquireProjectLock({path: "+map[bool]string{true: "['a']", false: "[]"}[c.name != ""]+", ifAvailable: true}))")
			assert.Equal(t, "acquire-denied", f["code"])
			arrive()
			tab.MustEval("lease = await got; null", nil)
			assert.True(t, browser.Get[bool](tab, "lease.token > 0 && lease.strategy === 'web-lock' && lease.mode === '"+c.mode+"'"))
			inspected(other)
			assert.True(t, browser.Get[bool](other, "seen.held.some(({token, ownerName}) => token > 0 && ownerName === 'Ann')"))
			tab.WaitFor("count('renew-scheduled') > 0", browser.Limit)
			assert.Equal(t, []string{"attempt", "acquired", "renew-scheduled"}, browser.Get[[]string](tab, "types().slice(0, 3)"))
			assert.Equal(t, 0, browser.Get[int](other, "grabbing = false, grabbed"))
			tab.MustEval("await hf.renewProjectLock(lease); await lease.release(); null", nil)
			other.MustEval("await (await hf.acquireProjectLock({..."+c.options+", ifAvailable: true})).release(); null", nil)
			tab.MustEval("await (await hf.acquireProjectLock("+c.options+")).release(); await hf.withProjectLock(() => {}, "+c.options+"); await hf.close(); null", nil)
			for _, tab := range []*browser.Tab{tab, other} {
				assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
				tab.Close()
			}
		})
	}
}

// An acquisition that ends while the Wasm is loading, or that Go refuses, leaves no lock behind. Those that follow are
// served in their order.
func TestEarlyGrantIsGivenBack(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	eachHost(t, func(t *testing.T, host string) {
		for name, c := range map[string]struct{ call, code string }{
			"in time": {"hf.acquireProjectLock({timeoutMs: 20_000})", "acquire-timeout"},
			"aborted": {"(() => { globalThis.giveUp = new AbortController(); return hf.acquireProjectLock({signal: giveUp.signal}) })()", "aborted"},
			"with":    {"(() => { globalThis.giveUp = new AbortController(); return hf.withProjectLock(() => 1, {signal: giveUp.signal}) })()", "aborted"},
			"closed":  {"hf.acquireProjectLock()", "aborted"},
			"refused": {"hf.acquireProjectLock({ttlMs: -1})", "invalid-argument"},
		} {
			t.Run(name, func(t *testing.T) {
				root := fmt.Sprintf("early back %s %s", host, name)
				later, arrive := n.gated(named(host, root, "Ann"))
				tab := w.earlyTab(t, later)
				tab.MustEval(`
					const real = setTimeout
					globalThis.setTimeout = (run, ms, ...more) => ms === 20_000 ? (globalThis.endTime = run, 0) : real(run, ms, ...more)
					globalThis.got = failure(`+c.call+`)
					null`, nil)
				tab.WaitFor("(await locks()).held === 1", browser.Limit)
				switch name {
				case "in time":
					tab.MustEval("endTime(); null", nil)
				case "closed":
					tab.MustEval("await hf.close(); null", nil)
				case "refused":
					arrive()
				default:
					tab.MustEval("globalThis.giveUp?.abort(); null", nil)
				}
				assert.Equal(t, c.code, browser.Get[event](tab, "await got")["code"])
				tab.WaitFor("(await locks()).held === 0", browser.Limit)
				if name != "closed" {
					tab.MustEval(`const order = []
						globalThis.all = Promise.all(['a', 'b', 'c'].map(async one => { const l = await hf.acquireProjectLock(); order.push(one); await l.release() }))
						null`, nil)
					if name != "refused" {
						arrive()
					}
					tab.MustEval("await all; null", nil)
					assert.Equal(t, []string{"a", "b", "c"}, browser.Get[[]string](tab, "order"))
				}
				tab.MustEval("await hf.close(); null", nil)
				tab.WaitFor("(await locks()).held === 0", browser.Limit)
				assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
				tab.Close()
			})
		}
	})
}

// A lease whose lock the page took before the runtime ran is lost when the lock is stolen, and in the back/forward cache.
func TestEarlyGrantIsLost(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	eachHost(t, func(t *testing.T, host string) {
		root := "early lost " + host
		later, arrive := n.gated(named(host, root, "Ann"))
		tab, stealer := w.earlyTab(t, later), w.earlyTab(t, named(host, root, "Eve"))
		tab.MustEval("globalThis.got = hf.acquireProjectLock(); null", nil)
		tab.WaitFor("(await locks()).held === 1", browser.Limit)
		arrive()
		tab.MustEval("lease = await got; null", nil)
		stealer.MustEval("lease = await hf.acquireProjectLock({steal: true}); null", nil)
		tab.WaitFor("lease.signal.aborted", browser.Limit)
		assert.Equal(t, "lease-lost", browser.Get[string](tab, "lease.signal.reason.code"))
		stealer.MustEval("await lease.release(); null", nil)

		// Stolen before the runtime ran: the acquisition waits in the queue.
		again, arriveAgain := n.gated(named(host, root, "Ann"))
		waits := w.earlyTab(t, again)
		waits.MustEval("globalThis.got = hf.acquireProjectLock(); null", nil)
		waits.WaitFor("(await locks()).held === 1", browser.Limit)
		stealer.MustEval("lease = await hf.acquireProjectLock({steal: true}); null", nil)
		arriveAgain()
		stealer.WaitFor("(await locks()).pending === 1", browser.Limit)
		stealer.MustEval("await lease.release(); null", nil)
		waits.MustEval("await (await got).release(); await hf.close(); null", nil)
		for _, tab := range []*browser.Tab{tab, stealer, waits} {
			tab.MustEval("await hf.close(); null", nil)
			assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
			tab.Close()
		}
	})
}
