package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// A page ends its AutoSave, and its editor shows another document, between the event of a restore and the answer of the call. The restored
// content is not loaded into that editor.
func TestRestoreLoadsNothingAfterTheEnd(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		root := "restore ends " + host
		tab := creating(t, w, host, root)
		tab.MustEval(`
			const made = create({debounceMs: 60_000, idleMs: 60_000})
			await new Promise(done => made.addEventListener('autosave:editable', done))
			const save = one => { text = one; made.markDirty(); return made.flushNow() }
			const first = await save('one')
			await save('two')
			let ended
			made.addEventListener('autosave:saved', () => {
				ended = made.dispose()
				text = 'of another document'
			}, {once: true})
			const loaded = []
			const restored = failure(made.restore(first.id, content => { loaded.push(text = new TextDecoder().decode(content)) }))
			result = await restored
			await ended
			await hf.close()
			null`, nil)
		assert.Empty(t, browser.Get[[]string](tab, "loaded"))
		assert.Equal(t, "of another document", browser.Get[string](tab, "text"))
		assert.Nil(t, browser.Get[event](tab, "result")["code"])
		assert.Equal(t, []any{"one", 0.0}, browser.Get[[]any](tab, "await saved('"+root+"')"))
		assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
		tab.Quiet()
	})
}
