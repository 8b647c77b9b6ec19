package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// An editor marks the content that it shows some time after it has loaded it, in a page that may not edit. That is no draft, whatever kind of
// snapshot the page returns, but text that the user types is one.
func TestLateMarkOfAContentIsNoDraft(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		for name, snapshot := range map[string]string{"text": "() => text", "object": "() => JSON.parse(text)", "promise": "async () => text"} {
			root := "late mark " + host + name
			w.saves(t, named(host, root, "Ann"), "{}", `{"text":"saved"}`)
			ben := w.earlyTab(t, named(host, root, "Ben"))
			ben.MustEval("edits(); null", nil)
			ben.WaitFor("!autosave.readOnly && autosave.lease", browser.Limit)
			tab := w.earlyTab(t, named(host, root, "Ann"))
			tab.MustEval("edits({}, undefined, "+snapshot+"); await autosave.ready; null", nil)
			tab.WaitFor("told.includes('readonly') && text", browser.Limit)
			tab.MustEval(`
				const {postMessage} = Worker.prototype
				globalThis.sealed = false
				Worker.prototype.postMessage = function (message, ...more) {
					postMessage.call(this, message, ...more)
					sealed ||= message.method === 'seal' || message.args?.[0] === 'seal'
				}
				autosave.markDirty()
				null`, nil)
			tab.WaitFor("sealed", browser.Limit)
			tab.WaitFor("autosave.state().pendingBytes === 0", browser.Limit)
			assert.Empty(t, browser.Get[[]string](tab, "await texts()"), name)
			assert.NotContains(t, browser.Get[[]string](tab, "told"), "draft", name)
			assert.Zero(t, browser.Get[int](tab, "autosave.state().drafts"), name)
			assert.Empty(t, browser.Get[[]string](ben, "await texts()"), name)
			tab.MustEval(`text = '{"text":"typed"}'; autosave.markDirty(); null`, nil)
			tab.WaitFor("told.includes('draft')", browser.Limit)
			assert.Equal(t, []string{`{"text":"typed"}`}, browser.Get[[]string](ben, "await texts()"), name)
			quiet(t, tab, ben)
		}
	})
}

// A page that may not edit marks the content that it shows, and its worker has not checked yet whether that is a draft. No other page makes a
// draft of it. Text that the user types meanwhile stays in localStorage until the worker has
// stored it.
func TestLateMarkIsNoDraftForAnotherPage(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		root := "late mark beside " + host
		w.saves(t, named(host, root, "Ann"), "{}", "saved")
		ben := w.earlyTab(t, named(host, root, "Ben"))
		ben.MustEval("edits(); null", nil)
		ben.WaitFor("!autosave.readOnly && autosave.lease", browser.Limit)
		tab := w.earlyTab(t, named(host, root, "Ann"))
		tab.MustEval("edits({journalMs: 0}); await autosave.ready; null", nil)
		tab.WaitFor("told.includes('readonly') && text", browser.Limit)
		tab.MustEval(`
			const {postMessage} = Worker.prototype
			globalThis.sealing = 0
			Worker.prototype.postMessage = function (message, ...more) {
				if (message.method === 'seal' || message.args?.[0] === 'seal') sealing++
				else postMessage.call(this, message, ...more)
			}
			autosave.markDirty()
			null`, nil)
		tab.WaitFor("sealing === 1", browser.Limit)
		assert.Empty(t, browser.Get[[]string](ben, "await texts()"))
		tab.MustEval("type(', typed'); null", nil)
		tab.WaitFor("sealing === 2", browser.Limit)
		assert.Equal(t, []string{"saved, typed"}, browser.Get[[]string](ben, "await texts()"))
		quiet(t, tab, ben)
	})
}
