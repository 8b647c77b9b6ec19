package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
	"github.com/holdfast-dev/holdfast/tests/endings"
)

// A person pastes more than localStorage has room for, and leaves the page. The pasted text survives if the worker has
// stored it. Otherwise the text before it does, as the guarantees say.
func TestPasteWithoutRoomInLocalStorage(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		for journal, stored := range map[string]bool{"journalMs: 200": true, "journalMs: 600_000": false} {
			options, end := named(host, endings.Word(), "Ann"), endings.Word()
			tab := w.editor(t, options, "{debounceMs: 600_000, idleMs: 600_000, "+journal+"}")
			tab.WaitFor("heard('editable').length === 1", browser.Limit)
			tab.MustEval("type('before'); await autosave.flushNow(); null", nil)
			tab.MustEval("type('#'.repeat(12_000_000) + '"+end+"'); null", nil)
			want := "before"
			if stored {
				w.WaitStored(t, end, browser.Limit)
				want += end
			}
			tab.Navigate(w.URL("/blank"))
			tab.Close()
			next := w.editor(t, options, "")
			next.WaitFor("heard('editable').length === 1", browser.Limit)
			assert.Equal(t, want, browser.Get[string](next, "text.replaceAll('#', '')"), "stored: %v", stored)
			next.MustEval("await hf.close(); null", nil)
			next.Close()
		}
	})
}
