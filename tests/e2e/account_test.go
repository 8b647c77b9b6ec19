package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// A user signs in and out in the demo. Pages of a server without users say nothing of it.
func TestSigningInAndOut(t *testing.T) {
	t.Parallel()
	b := profiles(t, 1)[0]
	anonymous := b.Open(t, serve(t).URL+"/room.html")
	anonymous.WaitFor("document.body.dataset.kind === 'free'", browser.Limit)
	assert.True(t, browser.Get[bool](anonymous, "document.querySelector('#account').hidden"))
	anonymous.Quiet()

	server := serve(t, "--api-keys", fileOf(t, keyOf("ann", "ann-key")))
	tab := b.Open(t, server.URL+"/room.html")
	const open = "[...document.querySelectorAll('#account button')].find(b => b.textContent === 'Sign in').click()"
	tab.WaitFor("!document.querySelector('#account').hidden", browser.Limit)
	tab.MustEval(open+"; null", nil)
	tab.MustEval("document.querySelector('dialog input').value = 'eve-key'; document.querySelector('dialog form').requestSubmit(); null", nil)
	tab.WaitFor("document.querySelector('dialog [role=alert]').textContent.includes('does not know this key')", browser.Limit)
	tab.MustEval("document.querySelector('dialog input').value = ' ann-key '; document.querySelector('dialog form').requestSubmit(); null", nil)
	tab.WaitFor("document.querySelector('#account')?.textContent.startsWith('Signed in as ann')", browser.Limit)
	assert.NotContains(t, browser.Get[string](tab, "document.cookie + JSON.stringify(localStorage) + document.documentElement.outerHTML"), "ann-key")
	tab.WaitFor("document.body.dataset.kind === 'free'", browser.Limit)

	tab.MustEval("document.querySelector('#account button').click(); null", nil)
	tab.WaitFor("document.querySelector('#account button')?.textContent === 'Sign in'", browser.Limit)
	assert.Equal(t, false, browser.Get[bool](tab, "(await (await fetch('/api/session')).json()).signed_in"))
	tab.Quiet("status of 401", "status of 403")
}

// The user signs out while the server is away. The page says that this has failed.
func TestSigningOutWithoutServer(t *testing.T) {
	t.Parallel()
	server := serve(t, "--api-keys", fileOf(t, keyOf("ann", "ann-key")))
	tab := browser.Start(t, quick).Open(t, server.URL+"/room.html")
	tab.MustEval("await fetch('/api/session', {method: 'POST', headers: {Authorization: 'Bearer ann-key'}}); null", nil)
	tab.Reload()
	tab.WaitFor("document.querySelector('#account')?.textContent.startsWith('Signed in as ann')", browser.Limit)
	address := server.Address()
	server.Stop()
	tab.MustEval("document.querySelector('#account button').click(); null", nil)
	tab.WaitFor("document.querySelector('#account [role=alert]')?.textContent.startsWith('You are still signed in')", browser.Limit)
	tab.Resize(390, 800)
	assert.LessOrEqual(t, browser.Get[int](tab, "document.documentElement.scrollWidth - innerWidth"), 0)
	server.Start(address)
	tab.MustEval("document.querySelector('#account button').click(); null", nil)
	tab.WaitFor("document.querySelector('#account button')?.textContent === 'Sign in'", browser.Limit)
}

// A user types in one tab and signs out in another one. The first tab says that it may not write, and shows the words that were not saved.
// It names nobody as the writer.
func TestEditorAfterSigningOutElsewhere(t *testing.T) {
	t.Parallel()
	server := serve(t, "--api-keys", fileOf(t, keyOf("ann", "ann-key")))
	tab := browser.Start(t, quick).Open(t, server.URL+"/?machines")
	tab.WaitFor("document.querySelector('#answer').textContent === 'You may not write.'", browser.Limit)
	assert.Equal(t, "The server does not say who writes.", browser.Get[string](tab, "document.querySelector('#share-state').textContent"))
	tab.MustEval("await fetch('/api/session', {method: 'POST', headers: {Authorization: 'Bearer ann-key'}}); null", nil)
	tab.Reload()
	tab.WaitFor("document.body?.dataset.kind === 'holding' && document.querySelectorAll('#tabs .writes').length === 1", browser.Limit)
	tab.MustEval(`
		globalThis.$ = id => document.getElementById(id)
		globalThis.write = more => { $('text').value += more; $('text').dispatchEvent(new Event('input', {bubbles: true})) }
		write('saved')`, nil)
	tab.WaitFor("$('phase').textContent === 'saved' && $('history').children.length === 1", browser.Limit)
	tab.MustEval("await fetch('/api/session', {method: 'DELETE'}); write(' typed')", nil)
	tab.WaitFor("$('answer').textContent === 'You may not write.' && $('account').textContent === 'Sign in'", browser.Limit)
	tab.WaitFor("!$('decide').hidden && $('decide-mine').textContent.includes('typed') && /Text that is not saved waits below/.test($('explain').textContent)", browser.Limit)
	assert.Zero(t, browser.Get[int](tab, "document.querySelectorAll('#tabs .writes').length"))
	assert.Equal(t, "Cannot be read now.", browser.Get[string](tab, "$('decide-theirs').textContent"))
	tab.MustEval("globalThis.copied = ''; navigator.clipboard.writeText = async text => { copied = text }; $('decide-copy').click()", nil)
	tab.WaitFor("copied === 'saved typed'", browser.Limit)
}

// The element does not name another tab as the editor if the server refuses the page. The button asks again, once the user has signed in.
func TestStatusElementOfUnknownUser(t *testing.T) {
	t.Parallel()
	server := serve(t, "--api-keys", fileOf(t, keyOf("ann", "ann-key")))
	tab := server.member(t, browser.Start(t, quick), "worker", "Ann")
	tab.MustEval(`
		const made = hf.createAutoSave(() => '')
		await import('/element.js')
		const bar = document.createElement('holdfast-status')
		bar.autosave = made
		document.body.append(bar)
		const part = name => bar.shadowRoot.querySelector('[part~="' + name + '"]')`, nil)
	tab.WaitFor("part('who').textContent === 'The server does not let you edit.' && part('ask').checkVisibility()", browser.Limit)
	tab.MustEval("part('ask').click()", nil)
	tab.WaitFor("part('message').textContent.includes('Sign in')", browser.Limit)
	tab.MustEval("await fetch('/api/session', {method: 'POST', headers: {Authorization: 'Bearer ann-key'}}); part('ask').click()", nil)
	tab.WaitFor("part('who').textContent === 'You edit.' && !part('message').checkVisibility()", browser.Limit)
}
