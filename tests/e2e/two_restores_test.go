package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

const restoreTwo = `
	type('one'); const one = await autosave.flushNow()
	type(', two'); const two = await autosave.flushNow()
	type(', three'); await autosave.flushNow()
	globalThis.loaded = []
	let arrive, saved = 0
	const slow = new Promise(done => { arrive = done })
	const both = new Promise(done => autosave.addEventListener('autosave:saved', () => ++saved === 2 && setTimeout(done, 100)))
	const load = async (content, ready) => { await ready; loaded.push(text = decode(content)) }
	const restores = [autosave.restore(one.id, content => load(content, slow)), autosave.restore(two.id, content => load(content))]
	await both
`

// A user restores a generation and then another one, while the editor still loads the first. It shows the last one, which is saved.
func TestTwoRestoresLoadInTheirOrder(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	ann := w.editor(t, named("worker", "two restores", "Ann"), "")
	ann.MustEval(restoreTwo+"arrive(); await Promise.all(restores); null", nil)
	assert.Equal(t, "one, two", browser.Get[string](ann, "await current()"))
	assert.Equal(t, "one, two", browser.Get[string](ann, "text"))
}

// The page ends its AutoSave before the editor has loaded the first one. The editor loads no other one.
func TestSecondRestoreLoadsNothingAfterTheEnd(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	ann := w.editor(t, named("worker", "two restores and the end", "Ann"), "")
	ann.MustEval(restoreTwo+`
		const ended = autosave.dispose()
		arrive()
		await Promise.all([ended, ...restores])
		null`, nil)
	assert.Equal(t, []string{"one"}, browser.Get[[]string](ann, "loaded"))
}
