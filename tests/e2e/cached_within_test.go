package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
	"github.com/holdfast-dev/holdfast/tests/endings"
)

// The lock of an AutoSave is within another lease of its page, which the page loses in the back/forward cache. After the return the AutoSave is
// read-only and says why, once, because nothing brings that lease back. Text that is typed then is a draft.
func TestAutoSaveWithinALeaseAfterTheCache(t *testing.T) {
	t.Parallel()
	w := open(t, whole)
	eachHost(t, func(t *testing.T, host string) {
		root := "within a lost lease " + host
		ann := w.tab(t, named(host, root, "Ann"))
		ann.MustEval(endings.Editing, nil)
		ann.MustEval(`
			globalThis.cached = 1
			lease = await hf.acquireProjectLock({path: ['book']})
			await edit({path: ['book', 'one'], lock: {within: lease}})
			type('saved, '); await autosave.flushNow(); type('and typed')
			null`, nil)
		ann.Navigate(w.URL("/blank?elsewhere"))
		if !back(t, ann) {
			return
		}
		ann.WaitFor("heard('readonly').length === 1 && autosave.readOnly", browser.Limit)
		told := browser.Get[event](ann, "heard('readonly')[0]")
		assert.Equal(t, []any{"acquire-failed", "invalid-argument"}, []any{told["reason"], told.object("error")["code"]})
		ann.MustEval("type(', and more')", nil)
		ann.WaitFor("(await autosave.drafts()).some(({bytes}) => bytes === 'saved, and typed, and more'.length)", browser.Limit)
		assert.Equal(t, "read-only", browser.Get[event](ann, "await failure(autosave.flushNow())")["code"])
		assert.Equal(t, 1, browser.Get[int](ann, "heard('readonly').length"))
		ann.MustEval("await failure(hf.close())", nil)
		assert.Empty(t, browser.Get[[]string](ann, "uncaught"))
	})
}
