package e2e

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
	"github.com/holdfast-dev/holdfast/tests/endings"
)

// The site's data is cleared while a page types. Text that was typed before and after survives the end of the
// browser: in a new file, or in localStorage if the storage no longer answers.
func TestNothingLostAfterClearing(t *testing.T) {
	t.Parallel()
	eachHost(t, func(t *testing.T, host string) {
		w := world{browser.Start(t, quick), browser.Serve(t, clearing(t))}
		tab := w.editor(t, "{strategy: 'web-lock', host: '"+host+"'}", "{debounceMs: 600_000, idleMs: 600_000}")
		word := endings.Word() // the browser may contain files of earlier tests
		tab.MustEval("type('"+word+"'); null", nil)
		w.WaitStored(t, word, browser.Limit)
		tab.Clear(w.URL(""))
		tab.MustEval("for (const word of [', ', 'and ', 'after']) { type(word); await new Promise(done => setTimeout(done, 300)) }", nil)
		text := word + ", and after"
		kept := func() bool {
			return browser.Get[bool](tab, "Object.values(localStorage).some(entry => entry.includes('"+text+"'))") || w.Stored(text)
		}
		require.Eventually(t, kept, 2*browser.Limit, 50*time.Millisecond)
		w.Restart(t, syscall.SIGTERM)

		next := w.tab(t, "{strategy: 'web-lock', host: '"+host+"'}")
		beginEditing(next, "")
		next.WaitFor("!autosave.readOnly", browser.Limit)
		next.WaitFor("text === '"+text+"'", browser.Limit)
		assert.Empty(t, browser.Get[[]string](next, "uncaught"))
		next.MustEval("await hf.close()", nil)
	})
}
