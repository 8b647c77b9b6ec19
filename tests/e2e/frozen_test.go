package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// holding makes a worker that gets the message stop for five seconds when it next opens a `.lock` file: long enough
// to suspend it there. The worker announces this to all.
const holding = `
if (globalThis.FileSystemFileHandle?.prototype.createSyncAccessHandle) {
	let hold = false
	addEventListener('message', event => {
		if (!event.data.hold) return
		hold = true
		event.stopImmediatePropagation()
	})
	const open = FileSystemFileHandle.prototype.createSyncAccessHandle
	FileSystemFileHandle.prototype.createSyncAccessHandle = async function () {
		const handle = await open.call(this)
		if (hold && this.name === '.lock') {
			hold = false
			new BroadcastChannel('holding').postMessage(1)
			const still = new WebAssembly.Memory({initial: 1, maximum: 1, shared: true}).buffer
			Atomics.wait(new Int32Array(still), 0, 0, 5000)
		}
		return handle
	}
}`

// A holder that is suspended during a step has the file of the records open, so nobody can read them. One of the
// waiters still takes over and continues without a record, and the others do not steal from it.
func TestSuspendedInAStep(t *testing.T) {
	t.Parallel()
	eachHostAtOnce(t, func(t *testing.T, host string) {
		w := world{browser.Start(t, quick), browser.Serve(t, served(t, holding))}
		root := "step-" + host
		next, last, holder := w.tab(t, at(host, root)), w.tab(t, at(host, root)), w.tab(t, "")
		holder.MustEval(`
			const workers = [], Real = Worker
			globalThis.Worker = class extends Real { constructor(...args) { super(...args); workers.push(this) } }
			await start(`+at(host, root)+`)
			lease = await hf.acquireProjectLock({heartbeatIntervalMs: 500, ttlMs: 3000})`, nil)
		for i, tab := range []*browser.Tab{next, last} {
			tab.MustEval("globalThis.got = hf.acquireProjectLock({backoff: {maxRetries: 0}}).then(l => lease = l); 1", nil)
			tab.WaitFor(fmt.Sprintf("(await locks()).pending === %d", i+1), browser.Limit)
		}
		for _, tab := range []*browser.Tab{next, last, holder} { // found beforehand, because a step ends sooner
			_, err := tab.Renderer()
			require.NoError(t, err)
		}
		next.MustEval("const held = new Promise(held => { new BroadcastChannel('holding').onmessage = held }); 1", nil)
		holder.MustEval("workers.forEach(worker => worker.postMessage({hold: true}))", nil)
		next.MustEval("await held; null", nil)
		holder.Suspend()

		// The first of the two that finds the holder frozen takes over.
		const winner = "(await new Promise(done => setTimeout(done, 20)), lease !== undefined)"
		for end := time.Now().Add(browser.Limit); !browser.Get[bool](next, winner); next, last = last, next {
			require.True(t, time.Now().Before(end), "nobody took over")
		}
		assert.Contains(t, browser.Get[[]string](next, "events.filter(e => e.type === 'lock:warning').map(e => e.detail)"),
			"the record of the lock could not be read for longer than its TTL, and nobody answered: it was taken over")
		last.MustEval("await new Promise(done => setTimeout(done, 4000))", nil) // it looks meanwhile
		assert.True(t, browser.Get[bool](last, "lease === undefined"), "the tab that took over lost the lock to the next one")

		holder.Continue()
		holder.WaitFor("lease.signal.aborted", browser.Limit)
		assert.Contains(t, []string{"lease-stale", "lease-lost"}, browser.Get[string](holder, "lease.signal.reason.code"))
		assert.False(t, browser.Get[bool](next, "lease.signal.aborted"))
		next.MustEval("await lease.release()", nil)
		last.MustEval("await got; await lease.release()", nil)
		free(next)
		for _, tab := range []*browser.Tab{holder, next, last} {
			tab.Quiet()
		}
	})
}

// The unsaved text of a page whose lock was stolen comes with autosave:readonly, however late the runtime gets the text, and whether
// or not it knows the last keys. Text that was saved before a handover is not offered.
func TestUnsavedTextIsReportedInTime(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		options := "{debounceMs: 20000, idleMs: 30000}"
		ann, ben := w.editor(t, named(host, "told "+host, "Ann"), options), w.editor(t, named(host, "told "+host, "Ben"), options)
		ann.MustEval("type('handed over'); null", nil)
		ben.MustEval("await autosave.requestEdit(); null", nil)
		ann.WaitFor("heard('readonly').length === 1", browser.Limit)
		assert.Empty(t, browser.Get[[]string](ann, "offered"), "it was saved")

		if host == "worker" {
			ben.WorkerEval("const real = self.onmessage; self.onmessage = event => setTimeout(() => real(event), 300); 1", nil)
		}
		ben.MustEval("type(', not saved'); null", nil)
		ann.MustEval("lease = await hf.acquireProjectLock({steal: true}); null", nil)
		ben.WaitFor("heard('readonly').length === 2", browser.Limit) // the first one reported that Ann edits
		assert.Equal(t, []string{"handed over, not saved"}, browser.Get[[]string](ben, "offered"))
		for _, tab := range []*browser.Tab{ann, ben} {
			tab.Quiet()
		}
	})
}
