package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// The folder of one project's document is no root of another project: both would save the same files, and each has locks of its own.
func TestRootInADocument(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		ann := w.editor(t, named(host, "outer "+host, "Ann"), "{path: ['x']}")
		ann.MustEval("type('of Ann'); await autosave.flushNow(); null", nil)
		bob := w.tab(t, named(host, "elsewhere "+host, "Bob"))
		assert.Equal(t, "invalid-argument", browser.Get[string](bob, `await openHoldfast(`+named(host, "outer "+host+"/documents/=x", "Bob")+`).then(async (hf) => {
			const autosave = hf.createAutoSave(() => 'of Bob')
			await autosave.ready
			await new Promise((done) => autosave.addEventListener('autosave:editable', done))
			autosave.markDirty()
			return 'saved ' + (await autosave.flushNow()).id
		}, ({code}) => code)`))
		assert.Equal(t, "of Ann", browser.Get[string](ann, "new TextDecoder().decode(await autosave.read('current'))"))
	})
}
