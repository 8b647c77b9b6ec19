package e2e

import (
	"testing"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// A read-only page reports a change and calls the AutoSave in the same task. Its text becomes a draft that others see.
func TestDraftOfAReaderThatCallsAtOnce(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	ann, ben := w.earlyTab(t, named("worker", "calls at once", "Ann")), w.earlyTab(t, named("worker", "calls at once", "Ben"))
	ann.MustEval("edits(); null", nil)
	ann.WaitFor("autosave.lease", browser.Limit)
	ben.MustEval("edits(); await autosave.ready; null", nil)
	ben.MustEval("type('typed'); await autosave.drafts(); null", nil)
	ann.WaitFor("(await texts()).includes('typed')", browser.Limit/3)
}

// An editor reports a change and calls the AutoSave in the same task. The journal has the text before it is saved.
func TestJournalOfAPageThatCallsAtOnce(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	tab := w.earlyTab(t, named("worker", "journal at once", "Ann"))
	tab.MustEval("edits({debounceMs: 60000, idleMs: 60000}); null", nil)
	tab.WaitFor("autosave.lease", browser.Limit)
	tab.MustEval("type('typed'); await autosave.history(); null", nil)
	tab.WaitFor(journalled("journal at once", "typed"), browser.Limit/3)
}
