package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
	"github.com/holdfast-dev/holdfast/tests/endings"
)

// A late listener gets the last autosave:editable or autosave:readonly again: once, in a separate task, and without
// the content if text was typed since.
func TestAutoSaveLateListeners(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		ann := w.editor(t, named(host, "late "+host, "Ann"), "")
		ann.MustEval("type('loaded'); await hf.close(); await start("+named(host, "late "+host, "Ann")+"); told.length = 0; await edit(); null", nil)
		ann.WaitFor("heard('editable').length === 1", browser.Limit)
		ann.MustEval(`
			const late = [], task = () => new Promise(done => setTimeout(done, 20))
			const listener = ({target, detail}) => late.push([target === autosave, detail.content && decode(detail.content), typeof detail.waitUntil])
			const listen = async (type = 'autosave:editable', options) => { autosave.addEventListener(type, listener, options); const now = late.length; await task(); return late.length - now }
			null`, nil)
		assert.Equal(t, 1, browser.Get[int](ann, "await listen()"), "one event is reported")
		assert.Equal(t, []any{true, "loaded", "function"}, browser.Get[[]any](ann, "late[0]"))
		assert.Equal(t, 0, browser.Get[int](ann, "await listen()"), "the listener has the event already")
		ann.MustEval("autosave.removeEventListener('autosave:editable', listener); null", nil)
		assert.Equal(t, 0, browser.Get[int](ann, "await listen('autosave:readonly')"), "the page is not read-only")
		ann.MustEval("const gone = () => late.push('gone'); autosave.addEventListener('autosave:editable', gone); autosave.removeEventListener('autosave:editable', gone); await task(); null", nil)
		assert.NotContains(t, browser.Get[[]any](ann, "late"), "gone")

		ann.MustEval("type(', typed'); const other = ({detail}) => late.push(detail.content === undefined); autosave.addEventListener('autosave:editable', other, {once: true}); await task(); null", nil)
		assert.Equal(t, true, browser.Get[any](ann, "late.at(-1)"), "the page has another text by now")

		ben := w.editor(t, named(host, "late "+host, "Ben"), "")
		ben.WaitFor("heard('readonly').length === 1", browser.Limit)
		ben.MustEval(`
			const late = []
			for (const type of ['readonly', 'editable']) autosave.addEventListener('autosave:' + type, ({type, detail}) => late.push(type, detail.reason))
			await new Promise(done => setTimeout(done, 20))
			result = late`, nil)
		assert.Equal(t, []string{"autosave:readonly", "acquire-failed"}, browser.Get[[]string](ben, "result"))
		ben.MustEval("await hf.close(); null", nil)
		ben.Quiet()
		ann.MustEval("await hf.close(); null", nil)
		ann.Quiet()
	})
}

// A listener of autosave:editable keeps the page read-only until the editor has loaded the content, for five seconds at most.
func TestAutoSaveWaitsForEditor(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		tab := w.editor(t, named(host, "loads "+host, "Ann"), "")
		tab.MustEval("let load; autosave.addEventListener('autosave:editable', e => e.detail.waitUntil(new Promise(done => load = done))); null", nil)
		other := w.editor(t, named(host, "loads "+host, "Ben"), "")
		other.MustEval("await autosave.requestEdit(); type('theirs'); await autosave.flushNow(); null", nil)
		tab.WaitFor("autosave.readOnly", browser.Limit)
		tab.MustEval("load = undefined; null", nil)
		other.MustEval("await hf.close(); null", nil)
		tab.WaitFor("load", browser.Limit)
		assert.True(t, browser.Get[bool](tab, "await new Promise(done => setTimeout(done, 100)), autosave.readOnly"))
		tab.MustEval("load(); null", nil)
		tab.WaitFor("!autosave.readOnly", browser.Limit)
		tab.MustEval("type(', mine'); await autosave.flushNow(); null", nil)
		assert.Equal(t, "theirs, mine", browser.Get[string](tab, "current()"))
		tab.MustEval("await hf.close(); null", nil)
		tab.Quiet()
	})
}

// An editor that fails or hangs while it loads the content does not prevent typing. AutoSave also waits for an editor
// that reports late that it loads. A page that loses the lock while its editor loads stays read-only.
func TestAutoSaveWaitsForEditorInTrouble(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		ann, ben := w.pair(t, host, "trouble "+host)
		ben.MustEval("await openDocument('a', ['a']); await write('a', 'theirs')", nil)
		ann.MustEval(`await openDocument('a', ['a'])
			globalThis.asked = async () => { const since = now(); await documents.a.autosave.requestEdit(); return now() - since }
			globalThis.later = () => new Promise(done => globalThis.load = done); null`, nil)
		for loads, least := range map[string]float64{
			"e => e.waitUntil(Promise.reject(new Error('not loaded')))": 0,
			"e => e.waitUntil(new Promise(() => {}))":                   4900,
			"e => e.waitUntil(7)":                                       0,
		} {
			ann.MustEval("globalThis.loads = "+loads+"; null", nil)
			took := browser.Get[float64](ann, "asked()")
			assert.GreaterOrEqual(t, took, least, loads)
			assert.Less(t, took, least+browser.Prompt, loads)
			ann.WaitFor("!documents.a.autosave.readOnly", browser.Limit)
			ann.MustEval("await write('a', 'mine')", nil)
			ben.MustEval("await documents.a.autosave.requestEdit()", nil)
			assert.Equal(t, "mine", browser.Get[string](ben, "documents.a.text"))
			ann.WaitFor("documents.a.autosave.readOnly", browser.Limit)
		}

		ann.MustEval("globalThis.loads = async e => { await 0; await new Promise(done => setTimeout(done)); e.waitUntil(later()) }; await asked(); null", nil)
		ann.WaitFor("globalThis.load", browser.Limit)
		assert.True(t, browser.Get[bool](ann, "documents.a.autosave.readOnly && !documents.a.autosave.lease"))
		ann.MustEval("load(); await 0; null", nil)
		ann.WaitFor("!documents.a.autosave.readOnly", browser.Limit)
		ann.MustEval("await write('a', 'after it was late')", nil)

		ann.MustEval("globalThis.load = undefined; globalThis.loads = e => e.waitUntil(later()); null", nil)
		ben.MustEval("await documents.a.autosave.requestEdit()", nil)
		ann.WaitFor("documents.a.autosave.readOnly && documents.a.told.at(-1) === 'readonly'", browser.Limit)
		ann.MustEval("asked().catch(() => undefined); null", nil)
		ann.WaitFor("globalThis.load", browser.Limit)
		ben.MustEval("globalThis.stolen = await hf.acquireProjectLock({path: ['a'], steal: true}); null", nil)
		ann.WaitFor("documents.a.told.at(-1) === 'readonly'", browser.Limit)
		assert.True(t, browser.Get[bool](ann, "load(), await new Promise(done => setTimeout(done, 50)), documents.a.autosave.readOnly"), "another page has the lock")
		ann.MustEval("globalThis.loads = undefined; null", nil)
		ben.MustEval("await stolen.release(); await documents.a.autosave.dispose()", nil)
		ann.WaitFor("!documents.a.autosave.readOnly", browser.Limit)
		for _, tab := range []*browser.Tab{ann, ben} {
			assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
			tab.MustEval("await hf.close()", nil)
			tab.Quiet()
		}
	})
}

// state() returns the same object until something changes, and subscribers receive each change.
func TestAutoSaveState(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		tab := w.editor(t, named(host, "state "+host, "Ann"), "")
		tab.WaitFor("heard('editable').length === 1 && autosave.state().phase === 'idle'", browser.Limit)
		tab.MustEval(`
			const seen = []
			const stop = autosave.subscribe(() => seen.push(autosave.state()))
			const idle = autosave.state()
			null`, nil)
		assert.True(t, browser.Get[bool](tab, "autosave.state() === idle && Object.isFrozen(idle)"))
		assert.True(t, browser.Get[bool](tab, "type('a'), autosave.state() !== idle && autosave.state() === autosave.state() && autosave.state().phase === 'debouncing'"))
		tab.WaitFor("heard('saved').length === 1 && autosave.state().phase === 'idle'", browser.Limit)
		assert.Equal(t, "debouncing", browser.Get[string](tab, "seen[0].phase"))
		assert.True(t, browser.Get[bool](tab, "seen.at(-1) === autosave.state()"))
		tab.MustEval("stop(); const heardOf = seen.length; type('b'); await autosave.flushNow(); null", nil)
		assert.True(t, browser.Get[bool](tab, "seen.length === heardOf"))
		tab.MustEval("await hf.close(); null", nil)
		tab.Quiet()
	})
}

// snapshots has values that a page may return as its snapshot, and their bytes.
var snapshots = map[string]struct{ value, want string }{
	"buffer":        {"bytes.buffer", "[0,1,2,255,4,5,6,7]"},
	"view":          {"bytes.subarray(2, 4)", "[2,255]"},
	"words":         {"new Uint16Array(bytes.buffer, 2, 1)", "[2,255]"},
	"data view":     {"new DataView(bytes.buffer, 1, 2)", "[1,2]"},
	"blob":          {"new Blob([bytes])", "[0,1,2,255,4,5,6,7]"},
	"promise":       {"Promise.resolve(bytes.buffer)", "[0,1,2,255,4,5,6,7]"},
	"object":        {"({then: 1})", "[123,34,116,104,101,110,34,58,49,125]"},
	"lone in JSON":  {`({a: '\ud800'})`, "[123,34,97,34,58,34,92,117,100,56,48,48,34,125]"},
	"empty object":  {"({})", "[123,125]"},
	"empty parts":   {"[{}, [], Object.create(null), new (class extends Array {})(), new String('')]", "[91,123,125,44,91,93,44,123,125,44,91,93,44,34,34,93]"},
	"mark of a BOM": {`'\ufeff'`, "[239,187,191]"},
}

// badSnapshots has values that are refused, and a word of the message.
var badSnapshots = map[string]string{
	"new Map([[1, 2]])":             "Map",
	"new Set([1])":                  "Set",
	"({a: [{b: new Map()}]})":       "Map",
	"/x/":                           "RegExp",
	"({a: /x/})":                    "RegExp",
	"new (class Secret { #a })":     "Secret",
	"[new (class Secret { #a })]":   "Secret",
	"new Error('x')":                "Error",
	"({a: {b: Promise.resolve()}})": "Promise",
	"undefined":                     "undefined",
	"null":                          "null",
	"42":                            "number",
	"() => () => 1":                 "function",
	`'half \ud83d'`:                 "surrogate",
	"() => { throw Error('why') }":  "why",
}

// A snapshot is saved unchanged, or refused.
func TestAutoSaveSnapshots(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	tab := w.tab(t, named("worker", "snapshots", "Ann"))
	tab.MustEval(endings.Editing, nil)
	tab.MustEval(`
		let given
		await edit({debounceMs: 60000, idleMs: 60000, journalMs: 60000}, () => typeof given === 'function' ? given() : given)
		const bytes = new Uint8Array([0, 1, 2, 255, 4, 5, 6, 7])
		const save = async value => {
			given = value
			autosave.markDirty()
			await autosave.flushNow()
			return autosave.read('current')
		}
		null`, nil)
	for name, c := range snapshots {
		assert.Equal(t, c.want, browser.Get[string](tab, "JSON.stringify([...await save("+c.value+")])"), name)
	}
	for value, named := range badSnapshots {
		f := browser.Get[event](tab, "await failure(save("+value+"))")
		assert.Equal(t, "snapshot-failed", f["code"], value)
		assert.Contains(t, f["message"], named, value)
	}

	// A mark during a snapshot is a separate change.
	tab.MustEval("let n = 0; await save(() => { if (n++ === 0) autosave.markDirty(); return 'take ' + n }); null", nil)
	assert.Equal(t, "debouncing", browser.Get[string](tab, "autosave.state().phase"))
	tab.MustEval("await autosave.flushNow(); null", nil)
	assert.Equal(t, "take 2", browser.Get[string](tab, "current()"))
	tab.MustEval("await hf.close(); null", nil)
	tab.Quiet()
}

// The worker ends with unsaved text. Another worker replaces it, and the page continues with the text.
func TestAutoSaveGoesOnWithAnotherWorker(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	tab := w.editor(t, named("worker", "another worker", "Ann"), "{debounceMs: 60000, idleMs: 60000}")
	tab.MustEval("type('before'); await autosave.flushNow(); type(', after'); null", nil)
	tab.EndWorker("self.close()")
	tab.WaitFor("heard('readonly').some(e => e.reason === 'runtime-crashed' && e.unsaved === 'before, after')", browser.Limit)
	tab.WaitFor("!autosave.readOnly && heard('editable').length === 2", browser.Limit)
	assert.Equal(t, "before, after", browser.Get[string](tab, "text"))
	tab.MustEval("type('!'); await autosave.flushNow(); null", nil)
	assert.Equal(t, "before, after!", browser.Get[string](tab, "current()"))
	assert.Empty(t, browser.Get[[]any](tab, "autosave.drafts()"))
	tab.MustEval("await hf.close(); null", nil)
	assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
}
