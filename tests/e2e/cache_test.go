package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// back returns to the page that the tab has left. It reports whether the page comes out of the back/forward cache. Chromium
// discards a page in the cache when another page queries or requests its locks before the browser has them back, which
// takes some milliseconds after pagehide. Such a page is loaded again. "masked" are causes in the browser alone, such as a
// lack of memory. There is no other cause for that.
func back(t *testing.T, tab *browser.Tab) bool {
	t.Helper()
	tab.MustEval("setTimeout(() => history.back()); null", nil) // the answer comes before the page goes
	tab.WaitFor("location.search === '' && document.readyState === 'complete'", browser.Limit)
	if browser.Get[bool](tab, "globalThis.cached === 1") {
		return true
	}
	reasons := browser.Get[[]string](tab, "performance.getEntriesByType('navigation')[0].notRestoredReasons.reasons.map(({reason}) => reason)")
	require.Len(t, reasons, 1)
	require.Contains(t, []string{"weblocks-contention", "masked"}, reasons[0])
	return false
}

// A page that enters the back/forward cache loses its leases at that moment, and its waiting calls. The next waiter
// gets the lock. After the page is shown again, it can acquire again.
func TestBackForwardCache(t *testing.T) {
	t.Parallel()
	w := open(t, whole)
	for name, lock := range map[string]string{
		"project": "{}",
		"path":    "{path: ['u', 'a']}",
		"slots":   "{path: ['u'], slots: 1}",
	} {
		t.Run(name, func(t *testing.T) {
			eachHost(t, func(t *testing.T, host string) {
				root := "cached-" + name + host
				ann, ben := w.tab(t, at(host, root)), w.tab(t, at(host, root))
				ann.MustEval(`
					globalThis.cached = 1
					const readonly = [], waits = []
					lease = await hf.acquireProjectLock({...`+lock+`, onReadonly: e => readonly.push(e.reason)})
					hf.acquireProjectLock(`+lock+`).catch(e => waits.push(e.code))
					null`, nil)
				ben.MustEval("globalThis.next = hf.acquireProjectLock("+lock+").then(l => lease = l); null", nil)
				ben.WaitFor("count('waiting') > 0", browser.Limit)
				left := time.Now()
				ann.Navigate(w.URL("/blank?elsewhere"))
				ben.MustEval("await next; null", nil)
				assert.Less(t, time.Since(left), 10*time.Second, "not only after the TTL")

				if !back(t, ann) {
					return
				}
				assertLostInCache(t, ann, ben, lock)

				// A page without a lease comes back unchanged.
				ann.Navigate(w.URL("/blank?elsewhere"))
				if !back(t, ann) {
					return
				}
				assert.Equal(t, 2, browser.Get[int](ann, "count('readonly-entered')"), "the second event came when the lock was not available")
				ann.MustEval("await (await hf.acquireProjectLock("+lock+")).release()", nil)
				free(ben)
			})
		})
	}
}

// assertLostInCache checks that Ann's page has lost its lease to Ben's while it was in the cache, and that it can wait and acquire again.
func assertLostInCache(t *testing.T, ann, ben *browser.Tab, lock string) {
	t.Helper()
	assert.Equal(t, "lease-lost", browser.Get[string](ann, "lease.signal.reason.code"))
	assert.Equal(t, []string{"lease-lost"}, browser.Get[[]string](ann, "readonly"))
	assert.Equal(t, []string{"lease-lost"}, browser.Get[[]string](ann, "waits"))
	assert.Equal(t, 1, browser.Get[int](ann, "count('readonly-entered')"))
	assert.Equal(t, "lease-lost", browser.Get[event](ann, "await failure(hf.renewProjectLock(lease))")["code"])
	ann.MustEval("await lease.release()", nil)
	assert.False(t, browser.Get[bool](ben, "lease.signal.aborted"))
	assert.Equal(t, "acquire-denied", browser.Get[event](ann, "await failure(hf.acquireProjectLock({..."+lock+", ifAvailable: true}))")["code"])
	ann.MustEval("globalThis.next = hf.acquireProjectLock("+lock+").then(l => lease = l); null", nil)
	ben.MustEval("await lease.release()", nil)
	ann.MustEval("await next; await lease.release()", nil)
	assert.Empty(t, browser.Get[[]string](ann, "waits.slice(1)"))
}

// A page that is closed while it returns from the cache, or in the cache, ends without an error of its own and leaves
// nothing behind.
func TestPageClosedWhileItReturnsFromTheCache(t *testing.T) {
	t.Parallel()
	w := open(t, whole)
	for _, moment := range []string{"pageshow", "pagehide"} {
		t.Run(moment, func(t *testing.T) {
			eachHost(t, func(t *testing.T, host string) {
				tab := w.tab(t, at(host, "closed-"+moment+host))
				tab.MustEval(`
					globalThis.cached = 1
					let closed = false
					lease = await hf.acquireProjectLock()
					addEventListener('`+moment+`', () => setTimeout(() => { closed = true; result = hf.close() }))
					null`, nil)
				tab.Navigate(w.URL("/blank?elsewhere"))
				if !back(t, tab) {
					return
				}
				tab.WaitFor("closed", browser.Limit)
				tab.MustEval("await result; null", nil)
				assert.Equal(t, "aborted", browser.Get[event](tab, "await failure(hf.acquireProjectLock())")["code"])
				tab.MustEval("hf = await (await import('/holdfast.js')).openHoldfast({root: 'another'}); await hf.acquireProjectLock(); await hf.close()", nil)
				eventually(t, func() bool { return tab.Workers() == 0 }, "a worker is left")
				tab.Quiet()
			})
		})
	}
}
