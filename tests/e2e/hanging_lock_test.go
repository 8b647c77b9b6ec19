package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// hangs makes the next request of the page for a lock without an answer. `answer` lets the browser answer it.
const hangs = `{
	const real = navigator.locks.request, wait = new Promise(done => { globalThis.answer = done })
	navigator.locks.request = async (...asked) => {
		navigator.locks.request = real
		globalThis.hung = true
		await wait
		return real.apply(navigator.locks, asked)
	}
}
null`

// A page returns from the back/forward cache before its Wasm arrives, and the browser does not answer its request for the lock. The page
// asks again. The answer that comes later changes nothing.
func TestEarlyReturnWhileALockRequestHangs(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		for _, end := range []string{"regained", "arrived"} {
			t.Run(end, func(t *testing.T) {
				root := "request hangs " + host + end
				tab := w.gatedTab(t, named(host, root, "Ann"))
				tab.MustEval(asHidden, nil)
				tab.MustEval(hangs, nil)
				tab.MustEval(asShown, nil)
				tab.WaitFor("globalThis.hung", browser.Limit)
				if end == "arrived" {
					tab.MustEval("arrive(); null", nil)
				}
				tab.WaitFor("!autosave.readOnly", browser.Limit)
				assert.True(t, held(tab, "holdfast:"+root))
				tab.MustEval("arrive(); answer(); type(' two'); null", nil)
				tab.WaitFor("autosave.lease && autosave.state().phase === 'idle' && await current() === ' one two'", browser.Limit)
				assert.Empty(t, browser.Get[[]string](tab, "await texts()"))
				quiet(t, tab)
			})
		}
	})
}

// The browser does not answer the request that an acquisition makes while the Wasm is loading. The runtime asks by itself, and the answer that
// comes later leaves no lock behind.
func TestEarlyAcquisitionWhileALockRequestHangs(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	eachHost(t, func(t *testing.T, host string) {
		root := "acquisition hangs " + host
		later, arrive := n.gated(named(host, root, "Ann"))
		tab := w.earlyTab(t, later)
		tab.MustEval(hangs, nil)
		tab.MustEval("hf.acquireProjectLock({timeoutMs: 20_000}).then(got => { lease = got }, error => { lease = error }); globalThis.lease = undefined; null", nil)
		tab.WaitFor("globalThis.hung", browser.Limit)
		arrive()
		tab.WaitFor("lease", browser.Limit)
		assert.Equal(t, "web-lock", browser.Get[string](tab, "lease.strategy"))
		tab.MustEval("answer(); await lease.release(); null", nil)
		tab.WaitFor("(await locks()).held === 0 && (await locks()).pending === 0", browser.Limit)
		quiet(t, tab)
	})
}

// The browser does not answer the request that an acquisition makes while the Wasm is loading. The acquisition is given up once the
// runtime runs, and ends at once.
func TestAcquisitionIsAbortedWhileALockRequestHangs(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	later, arrive := n.gated(named("worker", "aborted hangs", "Ann"))
	tab := w.earlyTab(t, later)
	tab.MustEval(hangs, nil)
	tab.MustEval(`
		const {setTimeout: real} = globalThis
		globalThis.setTimeout = (run, ms, ...more) => ms === 2000 ? 0 : real(run, ms, ...more) // the limit of the answer
		globalThis.stop = new AbortController()
		globalThis.code = ''
		hf.acquireProjectLock({signal: stop.signal}).catch(error => { code = error.code })
		null`, nil)
	tab.WaitFor("globalThis.hung", browser.Limit)
	arrive()
	tab.MustEval("await hf.ready; await hf.inspect(); stop.abort(); null", nil)
	tab.WaitFor("code === 'aborted'", browser.Limit/3)
	tab.MustEval("answer(); await hf.close(); null", nil)
	tab.WaitFor("(await locks()).held === 0 && (await locks()).pending === 0", browser.Limit)
	quiet(t, tab)
}
