package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// A page ends its AutoSave and enters the back/forward cache before that is done. When it comes back, the AutoSave may begin again while
// it ends. Then that ends too: otherwise it would hold the lock until the page is closed.
func TestDisposedPageInTheCacheHoldsNothing(t *testing.T) {
	t.Parallel()
	w := open(t, whole)
	eachHost(t, func(t *testing.T, host string) {
		root := "disposed in the cache " + host
		ann := w.tab(t, named(host, root, "Ann"))
		ann.MustEval(`
			globalThis.cached = 1
			let shown = 'typed'
			globalThis.slow = hf.createAutoSave(() => shown)
			await slow.ready
			shown = new Promise(() => {}) // the page has no answer yet
			slow.markDirty()
			globalThis.ended = failure(slow.dispose())
			null`, nil)
		ann.Navigate(w.URL("/blank?elsewhere"))
		if !back(t, ann) {
			return
		}
		ann.MustEval("await ended; null", nil)
		ben := w.editor(t, named(host, root, "Ben"), "")
		ben.WaitFor("!autosave.readOnly", browser.Limit)
		assert.False(t, browser.Get[bool](ben, "autosave.readOnly"))
	})
}
