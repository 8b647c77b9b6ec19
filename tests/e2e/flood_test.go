package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// A page always has 100 requests for its content open, and makes another one when one is answered. Its user's text is saved
// before the requests are answered that it made earlier, and every call settles. A page that asks at a fixed rate would
// overtax a slow machine: its messages to the worker wait in their order.
func TestFloodOfReadsLeavesTurnsToSaves(t *testing.T) {
	t.Parallel()
	eachHost(t, func(t *testing.T, host string) {
		w := open(t, quick)
		tab := w.editor(t, "{host: '"+host+"'}", "{debounceMs: 20}")
		tab.MustEval(`
			type('x'.repeat(100_000)); await autosave.flushNow()
			globalThis.answered = 0
			let flooding = true
			const codes = new Set(), ask = async () => {
				while (flooding) {
					codes.add(await autosave.read('current').then(() => 'read', reason => reason.code))
					answered++
				}
			}
			globalThis.flood = Promise.all(Array.from({length: 100}, ask)).then(() => { globalThis.over = true })
			null`, nil)
		tab.WaitFor("answered > 10", browser.Limit)
		tab.MustEval(`
			const before = answered
			autosave.addEventListener('autosave:saved', () => { globalThis.during ??= answered - before })
			type('typed'); null`, nil)
		tab.WaitFor("globalThis.during !== undefined", browser.Limit)
		during := browser.Get[int](tab, "during")
		t.Log("saved after", during, "reads")
		assert.Less(t, during, 100, "it is saved before the reads that were asked for earlier are answered")
		tab.MustEval("flooding = false; null", nil)
		tab.WaitFor("globalThis.over", 2*browser.Limit)
		codes := browser.Get[[]string](tab, "[...codes]")
		assert.Subset(t, []string{"read", "read-failed"}, codes)
		assert.Contains(t, codes, "read")
		tab.MustEval("await hf.close(); null", nil)
	})
}
