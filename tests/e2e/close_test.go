package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// eventually waits for a condition that the page itself cannot check, such as the number of its workers.
func eventually(t *testing.T, condition func() bool, otherwise string) {
	t.Helper()
	assert.Eventually(t, condition, browser.Limit, 5*time.Millisecond, otherwise)
}

// closing is a page in which Holdfasts are closed.
type closing struct {
	w             world
	tab           *browser.Tab
	host, options string
}

// close() releases everything and leaves no worker, whenever it is called.
func TestClose(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		c := closing{w, w.tab(t, ""), host, at(host, "close-"+host)}
		t.Run("with everything under way", c.whileBusy)
		t.Run("before it is ready", c.beforeReady)
		t.Run("again and again", c.againAndAgain)
		t.Run("two in one page", c.twoInOnePage)
		c.tab.Quiet()
	})
}

func (c closing) nothingIsLeft(t *testing.T) {
	t.Helper()
	eventually(t, func() bool { return c.tab.Workers() == 0 }, "a worker is left")
}

func (c closing) whileBusy(t *testing.T) {
	other := c.w.tab(t, c.options)
	c.tab.MustEval("await start("+c.options+"); await hf.ready", nil)
	eventually(t, func() bool { return c.tab.Workers() == 1 }, "that of the runtime, or that of its timers")
	assert.Equal(t, map[string]int{"page": 1, "worker": 0}[c.host], c.tab.Instances("WebAssembly.Instance"), "Go programs in the page")
	c.tab.MustEval(`
		globalThis.reasons = []
		lease = await hf.acquireProjectLock({onReadonly: e => reasons.push(e.reason)})
		const wait = {backoff: {maxRetries: 0}}
		const pending = [hf.acquireProjectLock(wait), hf.withProjectLock(() => {}, wait), hf.locks.request(lease.resource, () => {})].map(failure)`, nil)
	c.tab.WaitFor("(await locks()).pending === 3", browser.Limit)
	other.MustEval("result = hf.acquireProjectLock(wait = {backoff: {maxRetries: 0}}); 1", nil)
	c.tab.WaitFor("(await locks()).pending === 4", browser.Limit)
	c.tab.MustEval("events.length = 0; const since = now(); await Promise.all([hf.close(), hf.close()]); const took = now() - since", nil)
	assert.Less(t, browser.Get[float64](c.tab, "took"), browser.Prompt)
	for _, f := range browser.Get[[]event](c.tab, "await Promise.all(pending)") {
		assert.Equal(t, "aborted", f["code"], "%v", f)
	}
	other.MustEval("lease = await result", nil)
	events := told(t, c.tab)
	assert.Equal(t, []string{"release-requested", "released"}, kinds(ofLease(events, browser.Get[string](c.tab, "lease.leaseId"))))
	assert.Len(t, only(events, "readonly-entered"), 2, "of the two acquisitions")
	assert.True(t, browser.Get[bool](c.tab, "lease.signal.aborted && !(lease.signal.reason instanceof ProjectLockError)"))
	assert.Empty(t, browser.Get[[]string](c.tab, "reasons"), "the lease was released, not lost")
	c.nothingIsLeft(t)

	// No event is fired and no call succeeds any more.
	c.tab.MustEval("events.length = 0", nil)
	for _, call := range []string{"hf.acquireProjectLock()", "hf.withProjectLock(() => {})", "hf.inspect()", "hf.locks.query()",
		"hf.locks.request('x', () => {})", "hf.acquireProjectLock({timeoutMs: 0})"} {
		assert.Equal(t, "aborted", browser.Get[event](c.tab, "await failure("+call+")")["code"], call)
	}
	c.tab.MustEval("await hf.close(); await lease.release()", nil)
	assert.Empty(t, browser.Get[[]string](c.tab, "types()"))
	other.MustEval("await lease.release(); await hf.close()", nil)
	free(c.tab)
}

func (c closing) beforeReady(t *testing.T) {
	c.tab.MustEval(`
		hf = await openHoldfast(`+c.options+`)
		const early = failure(hf.acquireProjectLock()), ready = failure(hf.ready)
		await hf.close()`, nil)
	assert.Equal(t, "aborted", browser.Get[event](c.tab, "await early")["code"])
	assert.NotContains(t, []any{nil, "runtime-crashed"}, browser.Get[event](c.tab, "await ready")["code"])
	c.nothingIsLeft(t)
	free(c.tab)
}

func (c closing) againAndAgain(t *testing.T) {
	c.tab.MustEval(`
		for (let i = 0; i < 20; i++) {
			const hf = await openHoldfast(`+c.options+`)
			if (i % 3 > 0) await hf.acquireProjectLock()
			if (i % 3 > 1) hf.acquireProjectLock().catch(() => {})
			await hf.close()
		}`, nil)
	c.nothingIsLeft(t)
	free(c.tab)
	// If a program's goroutines, callbacks or memory were still reachable in the page, they would show here.
	c.tab.MustEval("hf = lease = undefined", nil)
	eventually(t, func() bool { return c.tab.Instances("WebAssembly.Instance") == 0 }, "a Go program is left")
}

func (c closing) twoInOnePage(t *testing.T) {
	c.tab.MustEval(`
		const one = await openHoldfast(`+c.options+`), two = await openHoldfast(`+c.options+`)
		const mine = await one.acquireProjectLock()
		const theirs = two.acquireProjectLock({backoff: {maxRetries: 0}})
		await one.close()
		lease = await theirs
		lease = await two.renewProjectLock(lease)
		await two.close()`, nil)
	c.nothingIsLeft(t)
	free(c.tab)
}

// ofLease returns the events of one lease.
func ofLease(events []event, id string) (own []event) {
	for _, e := range events {
		if e["leaseId"] == id {
			own = append(own, e)
		}
	}
	return own
}

// close() saves the AutoSaves that there are. One that is created while they are being saved would edit on without a lock, so it is refused.
func TestNoAutoSaveWhileItCloses(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		tab := w.tab(t, at(host, "closing "+host))
		tab.MustEval(`
			let text = () => 'first'
			const slow = await hf.initAutoSave(() => text())
			await new Promise(done => slow.addEventListener('autosave:editable', done))
			text = () => new Promise(done => setTimeout(done, 500, 'second'))
			slow.markDirty()
			const closed = hf.close(), late = hf.createAutoSave(() => 'late', {path: ['late']})
			result = await failure(late.ready)
			await closed
			null`, nil)
		assert.Equal(t, "aborted", browser.Get[event](tab, "result")["code"])
		assert.True(t, browser.Get[bool](tab, "late.readOnly"))
		assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
		free(tab)
		tab.Quiet()
	})
}
