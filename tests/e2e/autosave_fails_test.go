package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// freeAfter fails if, after some seconds, a failed initAutoSave has left anything behind: its lock, its place in the
// queue, or its channel.
func freeAfter(t *testing.T, tab *browser.Tab, why string) {
	t.Helper()
	assert.Equal(t, "granted", browser.Get[string](tab, `await hf.acquireProjectLock({timeoutMs: 4000, backoff: {initialDelayMs: 50, maxRetries: 0}}).then(async l => { await l.release(); return 'granted' }, e => e.code)`), why)
	assert.Equal(t, 0, browser.Get[int](tab, "(await hf.inspect()).pending.length"), why)
}

// Each step of initAutoSave fails once. initAutoSave rejects with the cause and releases everything that it has
// acquired.
func TestAutoSaveThatFailsGivesBackItsLock(t *testing.T) {
	t.Parallel()
	const channel = "BroadcastChannel = class extends BroadcastChannel { constructor(name) { if (name.endsWith(':edit')) throw new DOMException('planted', 'SecurityError'); super(name) } };"
	const storage = "IDBFactory.prototype.open = StorageManager.prototype.getDirectory = () => { throw new DOMException('planted', 'SecurityError') };"
	chromium := browser.Start(t, quick)
	for _, c := range []struct{ name, before, options, code string }{
		{"no storage", storage, "", "unsupported"},
		{"no channel", channel, "", "unsupported"},
		{"wrong option", "", "{maxGenerations: 1.5}", "invalid-argument"},
		{"wrong option of the lock", "", "{lock: {ttlMs: 5, heartbeatIntervalMs: 10}}", "invalid-argument"},
		{"wrong path", "", "{path: ['']}", "invalid-argument"},
		{"an option that cannot be sent", "", "{debounceMs: () => 0}", "*"},
		{"aborted before", "", "{lock: {signal: AbortSignal.abort()}}", "aborted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := world{chromium, browser.Serve(t, served(t, c.before))}
			eachHost(t, func(t *testing.T, host string) {
				tab := w.tab(t, at(host, "fails "+c.name+host))
				options := c.options
				if options == "" {
					options = "undefined"
				}
				failed := browser.Get[event](tab, "await failure(hf.initAutoSave(() => 'text', "+options+"))")
				if c.code != "*" {
					assert.Equal(t, c.code, failed["code"], "%v", failed)
				}
				assert.NotEmpty(t, failed["message"])
				if c.before == storage {
					assert.Contains(t, failed["message"], "neither files nor IndexedDB")
				}
				freeAfter(t, tab, c.name)
				assert.Empty(t, browser.Get[[]string](tab, "(await hf.locks.query()).held.map(({name}) => name)"))
				tab.MustEval("await hf.close()", nil)
			})
		})
	}
}

// The caller aborts at any moment: at each event of the lock, and at times in between.
func TestAutoSaveThatIsAbortedGivesBackItsLock(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		tab, other := w.tab(t, at(host, "aborted "+host)), w.tab(t, at(host, "aborted "+host))
		tab.MustEval(`globalThis.begin = async (moment) => {
			const stop = new AbortController()
			const unsubscribe = hf.subscribe(({type}) => { if (type === 'lock:' + moment) stop.abort() })
			const starting = hf.initAutoSave(() => 'text', {lock: {signal: stop.signal}})
			if (typeof moment === 'number') {
				const end = now() + moment
				if (moment > 20) await new Promise(done => setTimeout(done, moment - 10)) // a timer is less exact
				while (now() < end) await new Promise(done => { const {port1, port2} = new MessageChannel(); port1.onmessage = done; port2.postMessage(0) })
				stop.abort()
			}
			const outcome = await starting.then(async autosave => { await autosave.dispose(); return 'begun' }, e => e.code)
			unsubscribe()
			return outcome
		}; null`, nil)
		outcomes := map[string]int{}
		moments := []string{"'attempt'", "'acquired'", "'renew-scheduled'"}
		for i := range rounds(t, 40, 400) { // the last aborts come too late
			moments = append(moments, fmt.Sprint(float64(i*i)*0.3*float64(rounds(t, 100, 1))/100))
		}
		for _, moment := range moments {
			outcome := browser.Get[string](tab, "await begin("+moment+")")
			outcomes[outcome]++
			assert.Contains(t, []string{"begun", "aborted"}, outcome, moment)
			freeAfter(t, other, moment)
		}
		t.Log(outcomes)
		// A page that stands by leaves the queue.
		other.MustEval("lease = await hf.acquireProjectLock(); null", nil)
		for _, moment := range []string{"'attempt'", "'waiting'", "0", "3", "20"} {
			tab.MustEval("await begin("+moment+"); null", nil)
			assert.Equal(t, 0, browser.Get[int](other, "(await hf.inspect()).pending.length"), moment)
		}
		other.MustEval("await lease.release(); await hf.close()", nil)
		tab.MustEval("await hf.close()", nil)
		free(tab)
	})
}
