package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// A page that may not write has made a draft of its text, and the editor makes that draft the content. Then the user of the first page undoes
// the change. The undone text is a draft, although it equals the content on which the user typed.
func TestTextUndoneAfterItsDraftBecameTheContentIsADraft(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	ann := w.editor(t, named("worker", "undone draft", "Ann"), "")
	ann.MustEval("type('saved'); await autosave.flushNow(); null", nil)
	ben := w.editor(t, named("worker", "undone draft", "Ben"), "")
	ben.MustEval("await autosave.requestEdit(); null", nil)
	ann.WaitFor("autosave.readOnly", browser.Limit)
	ann.MustEval("text += ', mine'; autosave.markDirty(); null", nil)
	ann.WaitFor("autosave.state().drafts === 1", browser.Limit)
	ben.MustEval("await autosave.resolveDraft((await autosave.drafts())[0].id, 'content'); null", nil)
	assert.Equal(t, "saved, mine", browser.Get[string](ben, "current()"))
	ann.WaitFor("autosave.state().drafts === 0 && autosave.state().pendingBytes === 0", browser.Limit)
	ann.MustEval("text = 'saved'; autosave.markDirty(); null", nil)
	assert.Equal(t, "read-only", browser.Get[event](ann, "await failure(autosave.dispose())")["code"])
	assert.Equal(t, []string{"saved"}, browser.Get[[]string](ben, "Promise.all((await autosave.drafts()).map(({id}) => autosave.read(id).then(decode)))"))
}
