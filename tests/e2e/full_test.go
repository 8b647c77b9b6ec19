package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// A page opens a document while the storage is full. It shows the saved text, and saves when there is room again.
func TestFullStorageShowsSavedText(t *testing.T) {
	t.Parallel()
	eachHost(t, func(t *testing.T, host string) {
		w := open(t, quick)
		before := w.editor(t, named(host, "full", "Ann"), "{journalMs: 0}")
		before.MustEval("type('saved'); await autosave.flushNow(); null", nil)
		before.Quota(w.URL(""), 1000)
		before.MustEval("type('x'.repeat(1e6)); null", nil)
		assert.Equal(t, "quota-exceeded", browser.Get[string](before, "(await failure(autosave.flushNow())).code"))
		before.MustEval("text = 'saved'; await hf.close().catch(() => null)", nil)

		tab := w.tab(t, named(host, "full", "Ben"))
		assert.Equal(t, "saved", browser.Get[string](tab, `
			let text = ''
			const made = hf.createAutoSave(() => text)
			await made.ready
			new TextDecoder().decode(await made.read('current'))`))
		before.Quota(w.URL(""), 0)
		tab.WaitFor("!made.readOnly", browser.Limit)
		tab.MustEval("text = 'saved again'; made.markDirty(); await made.flushNow(); await hf.close()", nil)
	})
}

// The editor of the demo does not promise to keep the text while the storage is full.
func TestEditorSaysThatStorageIsFull(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	tab := editorTab(t, w, "Ann")
	tab.MustEval("write('saved')", nil)
	tab.WaitFor("$('phase').textContent === 'saved'", browser.Limit)
	tab.Quota(w.URL(""), 1000)
	tab.MustEval("write('x'.repeat(1e6))", nil)
	tab.WaitFor("$('phase').textContent === 'not saved'", browser.Limit)
	assert.Contains(t, browser.Get[string](tab, "$('explain').textContent"), "The storage is full.")
	assert.NotContains(t, browser.Get[string](tab, "$('explain').textContent"), "no typed text is lost")
	tab.Quota(w.URL(""), 0)
	tab.WaitFor("$('phase').textContent === 'saved' && /saved by itself/.test($('explain').textContent)", browser.Limit)
}
