package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// An AutoSave forgets a listener that has got its only event.
func TestListenerForOneEventIsForgotten(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	tab := w.editor(t, named("worker", "once", "Ann"), "")
	for _, kind := range []string{"saved", "phase"} {
		tab.MustEval("globalThis.before = autosave.hears('autosave:"+kind+"'); globalThis.got = new Promise(done => autosave.addEventListener('autosave:"+kind+"', done, {once: true})); type(' a'); await autosave.flushNow(); await got; null", nil)
		tab.MustEval("result = autosave.hears('autosave:"+kind+"') - before; null", nil)
		assert.Zero(t, browser.Get[int](tab, "result"), kind)
	}
	quiet(t, tab)
}

// A listener for one event is added again when later events have come. It gets the last of them.
func TestListenerForOneEventIsAddedAgain(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	tab := w.editor(t, named("worker", "once again", "Ann"), "")
	tab.MustEval(`
		let heard = 0
		const one = () => { heard++ }, listen = () => autosave.addEventListener('autosave:editable', one, {once: true})
		autosave.tell('autosave:readonly', {})
		listen()
		for (const type of ['editable', 'readonly', 'editable']) autosave.tell('autosave:' + type, {})
		listen()
		await new Promise(done => setTimeout(done))
		result = heard`, nil)
	assert.Equal(t, 2, browser.Get[int](tab, "result"))
	quiet(t, tab)
}
