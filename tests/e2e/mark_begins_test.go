package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// The worker has died, and the user types before its successor runs. The AutoSave edits again and saves that text by itself.
func TestTextTypedWhileItBeginsAnewIsSaved(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	ann := w.editor(t, named("worker", "typed as it begins anew", "Ann"), "")
	ann.MustEval("type('one'); await autosave.flushNow(); null", nil)
	ann.MustEval("autosave.addEventListener('autosave:readonly', () => setTimeout(() => type(', two'), 1)); null", nil)
	ann.EndWorker("self.close()")
	ann.WaitFor("!autosave.readOnly && heard('editable').length === 2", browser.Limit)
	ann.MustEval("await autosave.flushNow(); null", nil)
	assert.Equal(t, "one, two", browser.Get[string](ann, "text"))
	assert.Equal(t, "one, two", browser.Get[string](ann, "await current()"))
}
