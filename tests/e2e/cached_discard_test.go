package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// A page that may not write has unsaved text as it goes into the back/forward cache, and another page discards that text. The page returns, and
// edits: it loads what is saved, and does not save the discarded text.
func TestTextThatIsDiscardedWhileItsPageIsCached(t *testing.T) {
	t.Parallel()
	w := open(t, whole)
	eachHost(t, func(t *testing.T, host string) {
		root := "discarded while cached " + host
		ann := w.editor(t, named(host, root, "Ann"), "")
		ann.MustEval("globalThis.cached = 1; type('saved'); await autosave.flushNow(); null", nil)
		ben := w.editor(t, named(host, root, "Ben"), "")
		ben.MustEval("await autosave.requestEdit(); null", nil)
		ann.WaitFor("autosave.readOnly", browser.Limit)
		ann.MustEval("type(', mine'); null", nil)
		ann.Navigate(w.URL("/blank?elsewhere"))
		ben.WaitFor("(await autosave.drafts()).length === 1", browser.Limit)
		ben.MustEval("await autosave.resolveDraft((await autosave.drafts())[0].id, 'discard'); await autosave.dispose(); null", nil)
		if !back(t, ann) {
			return
		}
		ann.WaitFor("!autosave.readOnly", browser.Limit)
		assert.Equal(t, "saved", browser.Get[string](ann, "text"))
		assert.Zero(t, browser.Get[int](ann, "autosave.state().pendingBytes"))
		ann.MustEval("type(', again'); await autosave.flushNow(); null", nil)
		assert.Equal(t, "saved, again", browser.Get[string](ann, "current()"))
		assert.Empty(t, browser.Get[[]string](ann, "uncaught"))
	})
}
