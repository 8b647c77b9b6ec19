package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// A page requests its content repeatedly without waiting for the answers. Its user's text is still saved and
// journalled in time, and every call settles.
func TestFloodOfReadsLeavesTurnsToSaves(t *testing.T) {
	t.Parallel()
	eachHost(t, func(t *testing.T, host string) {
		w := open(t, quick)
		tab := w.editor(t, "{host: '"+host+"'}", "{}")
		tab.MustEval(`
			type('x'.repeat(300_000)); await autosave.flushNow()
			globalThis.asked = []
			globalThis.flood = setInterval(() => { for (let i = 0; i < 5; i++) asked.push(autosave.read('current').then(() => 'read', reason => reason.code)) }, 5)
			null`, nil)
		tab.WaitFor("asked.length > 1000", browser.Limit)
		tab.MustEval(`
			type('typed'); globalThis.typedAt = now()
			autosave.addEventListener('autosave:saved', () => { globalThis.savedAt ??= now() })
			null`, nil)
		tab.WaitFor("globalThis.savedAt", browser.Limit)
		tab.MustEval("clearInterval(flood); null", nil)
		t.Log("saved after", browser.Get[float64](tab, "savedAt - typedAt"), "ms;", browser.Get[int](tab, "asked.length"), "reads")
		assert.Less(t, browser.Get[float64](tab, "savedAt - typedAt"), 10_000.0, "it is saved before the reads that were asked for earlier are answered")
		codes := browser.Get[[]string](tab, "[...new Set(await Promise.all(asked))].sort()")
		assert.Subset(t, []string{"read", "read-failed"}, codes)
		assert.Contains(t, codes, "read")
		tab.MustEval("await hf.close(); null", nil)
	})
}
