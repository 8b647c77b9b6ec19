package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
	"github.com/holdfast-dev/holdfast/tests/endings"
)

// The number of entries that no version can read, because their base generation is gone, is limited. Entries that a
// newer version may read stay. A readable entry stays too and becomes a draft.
func TestUnreadableRescueEntriesAreBounded(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	first := w.editor(t, "{}", "{}")
	first.MustEval("type('saved'); await autosave.flushNow(); await hf.close(); null", nil)
	first.MustEval(`{
		const put = (draft, more) => localStorage.setItem('holdfast:draft:project/autosave:' + draft, JSON.stringify({draft, number: 1, base: 'gone', at: 0, ownerId: 'x', binary: false,
			differences: [{base: '1-1', length: 9, prefix: 1, suffix: 1, insert: 'typed'}], ...more}))
		for (let i = 0; i < 20; i++) put('old-' + i, {at: i})
		put('newer', {format: 2})
		put('whole', {at: 99, differences: [{length: 0, prefix: 0, suffix: 0, insert: 'typed, whole'}]})
		localStorage.setItem('holdfast:draft:project/autosave:strange', '(another format)')
	} null`, nil)
	next := w.editor(t, "{}", "{}")
	next.MustEval("await autosave.drafts(); null", nil)
	left := browser.Get[[]string](next, "Object.keys(localStorage).filter(key => key.startsWith('holdfast:draft:')).map(key => key.split(':').pop()).sort()")
	assert.Equal(t, []string{"newer", "old-12", "old-13", "old-14", "old-15", "old-16", "old-17", "old-18", "old-19", "strange"}, left)
	assert.Equal(t, []string{"whole"}, browser.Get[[]string](next, "(await autosave.drafts()).map(({id}) => id)"))
	next.MustEval("await hf.close(); null", nil)
}

// mutedOnceSaved prepares an editor of a long text whose worker gets no call any more once a text is saved: the tab
// crashes before a later text is saved.
const mutedOnceSaved = endings.StoresWord + `
	globalThis.half = 'a line of sixteen'.repeat(10_000)
	globalThis.write = words => { text = half + words + half; autosave.markDirty() }
	const {postMessage} = Worker.prototype
	Worker.prototype.postMessage = function (message, ...rest) {
		if (!globalThis.over || message.method !== 'flush' && message.method !== 'suspend') postMessage.call(this, message, ...rest)
	}
	autosave.addEventListener('autosave:saved', () => { globalThis.over = true })
	null`

// lastWords crashes the tab and expects the words in the next one.
func lastWords(t *testing.T, w world, tab *browser.Tab, root string) {
	t.Helper()
	tab.Crash()
	next := w.attacked(t, named("worker", root, "Ben"), endings.Unsaved)
	next.WaitFor("!autosave.readOnly && text.includes('second')", browser.Limit)
	assert.True(t, browser.Get[bool](next, "text === 'a line of sixteen'.repeat(10_000) + 'second' + 'a line of sixteen'.repeat(10_000)"))
	next.MustEval("await hf.close()", nil)
	next.Quiet()
}

// A tab is hidden while its text is being saved, and crashes later. Its last words are a difference to a draft that was
// emptied meanwhile, because it is saved.
func TestLastWordsOutliveTheDraftTheyBuildOn(t *testing.T) {
	t.Parallel()
	w := world{browser.Start(t, quick), browser.Serve(t, served(t, noFiles))}
	tab := w.attacked(t, named("worker", "emptied", "Ann"), "{debounceMs: 60000, idleMs: 60000, journalMs: 3000}")
	tab.MustEval(mutedOnceSaved, nil)
	tab.MustEval("write('first'); null", nil)
	tab.WaitFor("await storesWord('first', '', 'drafts')", browser.Limit)
	tab.MustEval("void autosave.flushNow(); write('second'); document.dispatchEvent(new Event('freeze')); null", nil)
	tab.WaitFor("globalThis.over && !await storesWord('first', '', 'drafts')", browser.Limit)
	lastWords(t, w, tab, "emptied")
}

// A page takes a snapshot while an earlier one is being saved. The last words are a difference to the saved text, and
// not to the text on which that snapshot was typed.
func TestLastWordsBuildOnTheSavedText(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	tab := w.attacked(t, named("worker", "pinned", "Ann"), "{debounceMs: 60000, idleMs: 60000, journalMs: 0}")
	tab.MustEval(mutedOnceSaved, nil)
	tab.MustEval("write('first'); void autosave.flushNow(); write('second'); void autosave.flushNow(); null", nil)
	tab.WaitFor("!!globalThis.over", browser.Limit)
	tab.MustEval("dispatchEvent(new Event('pagehide')); null", nil)
	lastWords(t, w, tab, "pinned")
}

// The last words are a small difference to a draft that is emptied now, but a large one to the saved text, and
// localStorage is full. They go to the draft.
func TestLastWordsThatFillTheStorageBecomeADraft(t *testing.T) {
	t.Parallel()
	w := world{browser.Start(t, quick), browser.Serve(t, served(t, noFiles))}
	tab := w.attacked(t, named("worker", "filled", "Ann"), "{debounceMs: 60000, idleMs: 60000, journalMs: 3000}")
	tab.MustEval(mutedOnceSaved, nil)
	tab.MustEval("const pasted = 'another line'.repeat(10_000); write(pasted + 'first'); full(); null", nil)
	tab.WaitFor("await storesWord('first', '', 'drafts')", browser.Limit)
	tab.MustEval("write(''); void autosave.flushNow(); write('another line'.repeat(10_000) + 'second'); document.dispatchEvent(new Event('freeze')); null", nil)
	tab.WaitFor("globalThis.over && !await storesWord('first', '', 'drafts')", browser.Limit)
	tab.Crash()
	next := w.attacked(t, named("worker", "filled", "Ben"), endings.Unsaved)
	next.WaitFor("!autosave.readOnly && text.includes('another linesecond')", browser.Limit)
	next.MustEval("await hf.close()", nil)
	next.Quiet()
}

// A page that is hidden or frozen may never run again: at that moment localStorage gets the text that is not in the journal yet, and the
// text is saved without a pause in typing.
func TestLastWordsOfAHiddenPage(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	for name, event := range map[string]string{
		"hidden": "Object.defineProperty(document, 'hidden', {value: true}); document.dispatchEvent(new Event('visibilitychange'))",
		"frozen": "document.dispatchEvent(new Event('freeze'))",
	} {
		eachHost(t, func(t *testing.T, host string) {
			tab := w.editor(t, named(host, name+" "+host, "Ann"), "{debounceMs: 60000, idleMs: 60000, journalMs: 60000}")
			word := endings.Word()
			tab.MustEval("type('"+word+"'); "+event+"; globalThis.kept = Object.values(localStorage).some(entry => entry.includes('"+word+"')); null", nil)
			assert.True(t, browser.Get[bool](tab, "kept"), name)
			tab.WaitFor("await current().catch(() => '') === '"+word+"'", browser.Limit)
			tab.MustEval("await hf.close()", nil)
			tab.Quiet()
		})
	}
}
