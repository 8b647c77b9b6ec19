package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// A page edited until the server stopped, and its lease ended. Neither the element nor inspect says that another tab edits: the
// lock in its way is its own, with which it waits for the server.
func TestStatusElementWithoutServer(t *testing.T) {
	t.Parallel()
	server := serve(t)
	tab := server.member(t, browser.Start(t, quick), "worker", "Ann")
	tab.MustEval(`
		let text = ''
		const made = await hf.initAutoSave(() => text, {lock: {ttlMs: 3000, heartbeatIntervalMs: 600, backoff: {initialDelayMs: 200, maxDelayMs: 500, maxRetries: 0}}})
		await import('/element.js')
		const bar = document.createElement('holdfast-status')
		bar.autosave = made
		document.body.append(bar)
		const shown = name => bar.shadowRoot.querySelector('[part~="' + name + '"]').textContent`, nil)
	tab.WaitFor("shown('who') === 'You edit.'", browser.Limit)
	address := server.Address()
	server.Stop()
	tab.WaitFor("made.readOnly && shown('who') + shown('save') === 'Offline. Your text is kept in this browser.'", browser.Limit)
	assert.Equal(t, 0, browser.Get[int](tab, "(await hf.inspect()).held.length"))
	assert.False(t, browser.Get[bool](tab, "made.state().holder !== undefined"))
	server.Start(address)
	tab.WaitFor("shown('who') === 'You edit.'", browser.Limit)
}

// The demo does not name the tab itself as the one that writes.
func TestEditorWithoutServer(t *testing.T) {
	t.Parallel()
	server := serve(t)
	tab := server.machine(t, browser.Start(t, quick), "Ann")
	tab.WaitFor("document.body.dataset.kind === 'holding' && $('share-state').textContent.startsWith('Ann writes.')", browser.Limit)
	address := server.Address()
	server.Stop()
	tab.WaitFor("$('text').readOnly", browser.Limit)
	assert.Equal(t, "Offline.", browser.Get[string](tab, "$('answer').textContent"))
	assert.Equal(t, "Reading · Ann", browser.Get[string](tab, "document.title"))
	server.Start(address)
	tab.WaitFor("$('answer').textContent === 'You write.'", browser.Limit)
}

// The server stops while the user types, and the page becomes read-only. It shows the draft, though not the text that the server has.
func TestEditorShowsDraftWithoutServer(t *testing.T) {
	t.Parallel()
	server := serve(t)
	tab := server.machine(t, browser.Start(t, quick), "Ann")
	tab.WaitFor("document.body.dataset.kind === 'holding'", browser.Limit)
	tab.MustEval("globalThis.write = more => { $('text').value += more; $('text').dispatchEvent(new Event('input', {bubbles: true})) }; write('saved')", nil)
	tab.WaitFor("$('phase').textContent === 'saved'", browser.Limit)
	server.Stop()
	tab.MustEval("write(' typed')", nil)
	tab.WaitFor("!$('decide').hidden && $('decide-mine').textContent.includes('typed')", browser.Limit)
	assert.Equal(t, "Cannot be read now.", browser.Get[string](tab, "$('decide-theirs').textContent"))
	assert.True(t, browser.Get[bool](tab, "$('outcome').hidden"), "no action of the user has failed")
}

// A page ends its AutoSave while the server is away. The error promises no further attempt of this page: the text is a draft, and the
// next editor saves it.
func TestDisposeWithoutServer(t *testing.T) {
	t.Parallel()
	server := serve(t)
	tab := server.member(t, browser.Start(t, quick), "worker", "Ann")
	tab.MustEval(sharedEditor, nil)
	address := server.Address()
	server.Stop()
	ended := browser.Get[failed](tab, "await (async () => { text = 'typed'; saver.markDirty(); return failure(saver.dispose()) })()")
	assert.Equal(t, "write-failed", ended.Code)
	assert.NotContains(t, ended.Message, "tried again")
	server.Start(address)
	tab.MustEval("text = ''; await edit(); null", nil)
	tab.WaitFor("!saver.readOnly && text === 'typed'", browser.Limit)
	assert.Equal(t, "typed", browser.Get[string](tab, "decoded(await saver.read('current'))"))
}
