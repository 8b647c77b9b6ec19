package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// onlyGo are options of an AutoSave that does not edit before Go runs: to other pages it looks like one of a version
// without early editing, which has the same locks, messages and files. A test cannot build such a version, because it
// has no history of the repository.
const onlyGo = "{lock: {ttlMs: 25000}}"

// A page that edits early and one of a version without early editing exclude each other, whichever comes first.
func TestEarlyBesideAPageThatOnlyGoServes(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	eachHost(t, func(t *testing.T, host string) {
		t.Run("it comes first", func(t *testing.T) {
			root := "older first " + host
			older := w.earlyTab(t, named(host, root, "Ann"))
			older.MustEval("edits("+onlyGo+"); null", nil)
			older.WaitFor("!autosave.readOnly && autosave.lease", browser.Limit)
			older.MustEval("type('older'); await autosave.flushNow(); null", nil)
			tab := w.earlyTab(t, n.never(named(host, root, "Ben")))
			tab.MustEval("edits(); null", nil)
			tab.WaitFor("told.includes('preview held: older')", browser.Limit)
			older.MustEval("type('!'); await hf.close(); null", nil)
			tab.WaitFor("told.includes('editable: older!') && !autosave.readOnly", browser.Limit)
			assert.Equal(t, []string{"preview held: older", "editable: older!"}, browser.Get[[]string](tab, "told"))
			tab.Close()
			older.Close()
		})
		t.Run("it waits", func(t *testing.T) {
			root := "older waits " + host
			later, arrive := n.gated(named(host, root, "Ben"))
			tab := w.typesEarly(t, later)
			older := w.earlyTab(t, named(host, root, "Ann"))
			older.MustEval("edits("+onlyGo+"); null", nil)
			older.WaitFor("told.includes('readonly')", browser.Limit)
			older.MustEval("globalThis.asked = autosave.requestEdit(); null", nil)
			arrive()
			older.MustEval("await asked; null", nil)
			older.WaitFor("!autosave.readOnly && text === ' and typed'", browser.Limit)
			tab.WaitFor("told.includes('readonly') && autosave.readOnly", browser.Limit)
			assert.Equal(t, []string{"editable", "saved", "readonly"}, browser.Get[[]string](tab, "told"))
			assert.Empty(t, browser.Get[[]string](tab, "await texts()"))
			quiet(t, tab, older)
		})
		t.Run("it steals", func(t *testing.T) {
			root := "older steals " + host
			tab := w.typesEarly(t, n.never(named(host, root, "Ben")))
			older := w.earlyTab(t, named(host, root, "Ann"))
			older.MustEval("edits("+onlyGo+"); null", nil)
			older.WaitFor("told.includes('readonly')", browser.Limit)
			older.MustEval("await autosave.requestEdit({force: true, graceMs: 100}); null", nil)
			older.WaitFor("!autosave.readOnly", browser.Limit)
			tab.WaitFor("told.includes('readonly') && autosave.readOnly", browser.Limit)
			tab.Close()
			older.WaitFor("text === ' and typed' || (await texts()).includes(' and typed')", browser.Limit)
			quiet(t, older)
		})
	})
}

// A page that edits for longer than any time limit of the takeover has one draft, which its first save empties.
func TestEarlyEditingTakesLong(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	eachHost(t, func(t *testing.T, host string) {
		later, arrive := n.gated(named(host, "early long "+host, "Ann"))
		tab := w.typesEarly(t, later)
		tab.MustEval("for (let i = 0; i < 35; i++) { type('.'); await new Promise(done => setTimeout(done, 200)) }; null", nil)
		want := browser.Get[string](tab, "text")
		arrive()
		tab.WaitFor("told.includes('saved') && autosave.state().phase === 'idle'", browser.Limit)
		assert.Equal(t, []string{"editable", "saved"}, browser.Get[[]string](tab, "told"))
		assert.Equal(t, want, browser.Get[string](tab, "await current()"))
		assert.Empty(t, browser.Get[[]string](tab, "await texts()"))
		assert.Equal(t, 0, browser.Get[int](tab, "autosave.state().drafts"))
		quiet(t, tab)
	})
}

// The first word is typed after Go was called, and before it knows this AutoSave. It is saved although no other word follows.
func TestFirstWordDuringTheTakeoverIsSaved(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	later, arrive := n.gated(named("worker", "early first word", "Ann"))
	tab := w.earlyTab(t, later)
	tab.MustEval(`{
		const post = Worker.prototype.postMessage
		Worker.prototype.postMessage = function (message, ...rest) {
			post.call(this, message, ...rest)
			if (message.kind === 'call' && message.method === 'autosave') { globalThis.dirty = message.arg.dirty; queueMicrotask(() => type('word')) }
		}
	}`, nil)
	tab.MustEval("edits(); null", nil)
	tab.WaitFor("!autosave.readOnly", browser.Limit)
	arrive()
	tab.WaitFor("told.includes('saved') && autosave.state().phase === 'idle'", browser.Limit)
	assert.False(t, browser.Get[bool](tab, "dirty"), "nothing was typed before the call")
	assert.Equal(t, "word", browser.Get[string](tab, "await current()"))
	quiet(t, tab)
}
