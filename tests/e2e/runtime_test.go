package e2e

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// programs counts the Go programs and the workers of a page.
func programs(tab *browser.Tab) [2]int {
	return [2]int{tab.Instances("WebAssembly.Instance"), tab.Workers()}
}

// All Holdfasts of a page share one worker and one Wasm instance, and the last close ends it.
func TestOneRuntimeForAPage(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		tab := creating(t, w, host, "one-"+host)
		one := map[string][2]int{"page": {1, 1}, "worker": {0, 1}}[host]
		tab.MustEval(`
			const all = [hf]
			for (let n = 0; n < 9; n++) all.push(createHoldfast({host: '`+host+`', root: 'one-`+host+`' + n % 2}))
			await Promise.all(all.map(one => one.ready))
			const ids = new Set(all.map(one => one.ownerId)).size`, nil)
		assert.Equal(t, 10, browser.Get[int](tab, "ids"))
		eventually(t, func() bool { return programs(tab) == one }, fmt.Sprint("programs and workers: ", programs(tab)))

		// They exclude each other as before, and each receives only its own events.
		tab.MustEval(`
			const [a, b] = [all[1], all[3]]
			const heardBy = one => { const types = []; one.subscribe(e => types.push(e.type + (e.ownerId === one.ownerId ? '' : ' of another'))); return types }
			const heardA = heardBy(a), heardB = heardBy(b)
			const held = await a.acquireProjectLock()
			result = await failure(b.acquireProjectLock({ifAvailable: true}))
			const holder = (await b.inspect()).held[0].ownerId`, nil)
		assert.Equal(t, "acquire-denied", browser.Get[event](tab, "result")["code"])
		assert.True(t, browser.Get[bool](tab, "holder === a.ownerId && held.ownerId === a.ownerId"))
		assert.Equal(t, []string{"lock:attempt", "lock:acquired", "lock:renew-scheduled"}, browser.Get[[]string](tab, "heardA.slice(0, 3)"))
		assert.NotContains(t, browser.Get[[]string](tab, "heardB"), "lock:acquired")

		// A Holdfast that closes releases its own leases and does not affect the others.
		tab.MustEval("const next = b.acquireProjectLock(); await all[0].close(); await a.close(); const lease2 = await next", nil)
		assert.True(t, browser.Get[bool](tab, "held.signal.aborted && !lease2.signal.aborted"))
		tab.MustEval("const made = create({}, all[5]), other = create({}, all[2]); await made.ready; await other.ready", nil)
		assert.Equal(t, []bool{true, false}, browser.Get[[]bool](tab, "[made.readOnly, other.readOnly]"), "the lease of b is in the way of the first")
		tab.MustEval("await Promise.all(all.slice(4).map(one => one.close())); await b.renewProjectLock(lease2)", nil)
		assert.Equal(t, map[string][2]int{"page": {1, 2}, "worker": {0, 1}}[host], programs(tab), "in a page, another worker opens files")
		tab.MustEval("const closing = b.close(); const late = await openHoldfast({host: '"+host+"'}); await late.ready; await closing; await (await late.acquireProjectLock()).release(); await late.close(); await all[2].close()", nil)
		eventually(t, func() bool { return tab.Workers() == 0 }, "a worker is left")
		assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
		tab.Quiet()
	})
}

// A module that runs again, as with hot module replacement, finds the runtime of the previous one. So does another
// copy of the package.
func TestModuleThatRunsAgainSharesTheRuntime(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		tab := creating(t, w, host, "again-"+host)
		tab.MustEval(`
			const again = await import('/holdfast.js?t=1')
			const others = [again.createHoldfast(`+at(host, "again-"+host)+`), again.createHoldfast(`+at(host, "again-"+host)+`)]
			const made = [create({path: ['a']}), create({path: ['b']}, others[0]), create({path: ['c']}, others[1])]
			await Promise.all(made.map(one => one.ready))
			text = 'typed'
			for (const one of made) one.markDirty()
			await Promise.all(made.map(one => one.flushNow()))`, nil)
		eventually(t, func() bool { return tab.Workers() == map[string]int{"page": 2, "worker": 1}[host] }, "in a page, another worker opens files")
		tab.MustEval("await hf.close(); await others[0].close(); result = new TextDecoder().decode(await made[2].read('current'))", nil)
		assert.Equal(t, "typed", browser.Get[string](tab, "result"))
		tab.MustEval("await others[1].close()", nil)
		eventually(t, func() bool { return tab.Workers() == 0 }, "a worker is left")
		tab.Quiet()
	})
}

// Holdfasts of a page begin and end in any order: the program lives as long as one of them.
func TestHoldfastsOfAPageEndInAnyOrder(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	tab := creating(t, w, "page", "any-order")
	tab.MustEval(`
		const other = createHoldfast({host: 'page'})
		await other.ready
		const lease3 = await hf.acquireProjectLock()
		await other.close()
		await hf.renewProjectLock(lease3)
		const third = createHoldfast({host: 'page'})
		await (await third.acquireProjectLock({path: ['x'], mode: 'shared', timeoutMs: 0}).catch(() => ({release() {}}))).release()
		await hf.close()
		await (await third.acquireProjectLock()).release()
		await third.close()`, nil)
	eventually(t, func() bool { return tab.Workers() == 0 }, "a worker is left")
	assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
	tab.Quiet()
}

// The death of the program ends everything that the page has opened, with one event for each. A Holdfast that is
// opened afterwards gets another program.
func TestCrashOfASharedRuntime(t *testing.T) {
	t.Parallel()
	w := world{browser.Start(t, quick), site(t, faultsDir)}
	eachHost(t, func(t *testing.T, host string) {
		tab := creating(t, w, host, "crash-shared-"+host)
		tab.MustEval(`
			const other = createHoldfast(`+at(host, "crash-shared-"+host)+`), idle = createHoldfast({host: '`+host+`'})
			const ends = []
			for (const one of [hf, other, idle]) one.subscribe(e => e.type === 'lock:readonly-entered' && ends.push(e.reason + ' ' + [hf, other, idle].findIndex(x => x.ownerId === e.ownerId)))
			await Promise.all([hf.ready, other.ready, idle.ready])
			const held = await hf.acquireProjectLock()
			const waiting = failure(other.acquireProjectLock({backoff: {maxRetries: 0}}))
			await failure(idle.acquireProjectLock({mode: 'fault:goroutine'}))
			result = [(await waiting).code, held.signal.reason.code, await failure(hf.inspect()).then(f => f.code), await failure(other.inspect()).then(f => f.code)]
			await Promise.all([hf, other, idle].map(one => one.close()))
			const next = createHoldfast(`+at(host, "crash-shared-"+host)+`)
			await (await next.acquireProjectLock()).release()
			await next.close()`, nil)
		assert.Equal(t, []string{"runtime-crashed", "runtime-crashed", "runtime-crashed", "runtime-crashed"}, browser.Get[[]string](tab, "result"))
		assert.ElementsMatch(t, []string{"runtime-crashed 0", "runtime-crashed 1", "runtime-crashed 2"}, browser.Get[[]string](tab, "ends"))
		eventually(t, func() bool { return tab.Workers() == 0 }, "a worker is left")
		assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
		tab.Spare()
	})
}

// A page with a lease releases it on its way into the back/forward cache, whichever of its Holdfasts holds it. All of
// them continue when the page is shown.
func TestSharedRuntimeInTheCache(t *testing.T) {
	t.Parallel()
	w := open(t, whole)
	eachHost(t, func(t *testing.T, host string) {
		root := "cached-shared-" + host
		other := w.tab(t, at(host, root))
		tab := creating(t, w, host, root)
		tab.MustEval(`
			globalThis.cached = 1
			const idle = createHoldfast(`+at(host, root)+`)
			const ends = []
			for (const one of [hf, idle]) one.subscribe(e => e.type === 'lock:readonly-entered' && ends.push(e.lastError.code + ' ' + [hf, idle].findIndex(x => x.ownerId === e.ownerId)))
			await idle.ready
			const held = await hf.acquireProjectLock()`, nil)
		tab.Navigate(w.URL("/blank?elsewhere"))
		other.MustEval("await (await hf.acquireProjectLock()).release()", nil)
		if !back(t, tab) {
			return
		}
		tab.WaitFor("ends.length > 0", browser.Limit)
		tab.MustEval("await (await idle.acquireProjectLock()).release(); await (await hf.acquireProjectLock()).release()", nil)
		assert.Equal(t, []string{"lease-lost 0"}, browser.Get[[]string](tab, "ends"))
		tab.MustEval("await hf.close(); await idle.close()", nil)
		eventually(t, func() bool { return tab.Workers() == 0 }, "a worker is left")
		assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
		tab.Quiet()
		tab.Close()
	})
}

// A runtime that never finishes loading fails the Holdfasts that wait for it, one after the other. The first one that opens
// again starts another runtime, although others still wait for the old one.
func TestStuckRuntimeIsNotSharedAgain(t *testing.T) {
	t.Parallel()
	eachHostAtOnce(t, func(t *testing.T, host string) {
		bundle := pages(t, siteDir)
		var stuck atomic.Bool
		mux := http.NewServeMux()
		mux.Handle("/", bundle)
		mux.HandleFunc("/holdfast.wasm", func(w http.ResponseWriter, r *http.Request) {
			if stuck.CompareAndSwap(true, false) {
				<-r.Context().Done()
				return
			}
			bundle.ServeHTTP(w, r)
		})
		w := world{browser.Start(t, quick), browser.Serve(t, mux)}
		stuck.Store(true)
		tab := creating(t, w, host, "stuck-"+host)
		tab.MustEval("const first = failure(hf.ready); null", nil)
		eventually(t, func() bool { return !stuck.Load() }, "the Wasm was not asked for")
		tab.MustEval(`await new Promise(done => setTimeout(done, 3000))
			const second = createHoldfast(`+at(host, "stuck-"+host)+`), third = first.then(async f => {
				const again = createHoldfast(`+at(host, "stuck-"+host)+`)
				await again.ready
				const lease = await again.acquireProjectLock()
				await lease.release()
				await again.close()
				return f.code
			})
			globalThis.opened = undefined
			third.then(code => { opened = code }, e => { opened = String(e) }); null`, nil)
		tab.WaitFor("opened", 3*browser.Limit)
		assert.Equal(t, "load-failed", browser.Get[string](tab, "opened"))
		tab.MustEval("await failure(second.ready); await second.close(); await hf.close()", nil)
		tab.Spare()
	})
}

// A Holdfast that closes while the page preloads its runtime leaves no worker behind.
func TestHoldfastClosesDuringPreload(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	tab := w.tab(t, "")
	tab.MustEval(`
		const {createHoldfast, preloadHoldfast} = await import('/holdfast.js')
		hf = createHoldfast({})
		const preloaded = preloadHoldfast()
		await hf.close()
		await preloaded`, nil)
	eventually(t, func() bool { return tab.Workers() == 0 }, "a worker is left")
	tab.Quiet()
}

// A Holdfast that is opened in the task in which the last one is closed runs, whichever of the two reaches the program first.
func TestOpenedAsTheLastOneCloses(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		for _, order := range []string{
			"const closed = hf.close(); const next = createHoldfast(options)",
			"const next = createHoldfast(options); const closed = hf.close()",
			"const next = createHoldfast(options); await undefined; const closed = hf.close()",
			"const closed = hf.close(); await undefined; const next = createHoldfast(options)",
		} {
			t.Run(order, func(t *testing.T) {
				tab := w.tab(t, "")
				tab.MustEval("const {createHoldfast} = await import('/holdfast.js'), options = "+at(host, "successor-"+host)+"; hf = createHoldfast(options); await hf.ready; "+order+`
					await closed
					result = await failure(next.acquireProjectLock({timeoutMs: 30_000}).then(lease => lease.token > 0))
					await next.close()`, nil)
				assert.Equal(t, event{"value": true}, browser.Get[event](tab, "result"))
				eventually(t, func() bool { return tab.Workers() == 0 }, "a worker is left")
				tab.Quiet()
				tab.Spare()
			})
		}
	})
}
