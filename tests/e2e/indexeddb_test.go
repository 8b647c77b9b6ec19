package e2e

import (
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
	"github.com/holdfast-dev/holdfast/tests/endings"
)

// noFiles takes the file storage away, as in WebKitGTK.
const noFiles = "delete StorageManager.prototype.getDirectory;"

// Where a page has no files, its text, its history and its drafts are in IndexedDB.
func TestAutoSaveInIndexedDB(t *testing.T) {
	t.Parallel()
	w := world{browser.Start(t, quick), browser.Serve(t, served(t, noFiles))}
	eachHost(t, func(t *testing.T, host string) {
		testAutoSave(t, w, host)

		root := "indexeddb " + host
		ann := w.attacked(t, named(host, root, "Ann"), endings.Unsaved)
		assert.Equal(t, "indexeddb", browser.Get[string](ann, "autosave.state().storage"))
		ann.MustEval("type('saved'); await autosave.flushNow(); type(', last words'); null", nil)
		ann.MustEval(endings.StoresWord+"; null", nil)
		ann.WaitFor("await storesWord('last words', '"+root+"')", browser.Limit)
		ann.Crash()

		ben := w.attacked(t, named(host, root, "Ben"), endings.Unsaved)
		ben.WaitFor("!autosave.readOnly && text === 'saved, last words'", browser.Limit)
		assert.Equal(t, 2, browser.Get[int](ben, "(await autosave.history()).length"))
		assert.Equal(t, 0, browser.Get[int](ben, "(await autosave.drafts()).length"))
		// The user clears the site's data under the page, which saves its text again.
		ben.Clear(w.URL(""))
		ben.MustEval("type(', saved anew'); null", nil)
		ben.WaitFor("await autosave.flushNow().then(() => true, () => false)", browser.Limit)
		assert.Equal(t, "saved, last words, saved anew", browser.Get[string](ben, "current()"))
		ben.MustEval("await hf.close()", nil)
		require.Empty(t, browser.Get[[]string](ben, "uncaught"))
		ben.Quiet()
	})
}

// A full storage refuses a save, and nothing of it is stored.
func TestIndexedDBIsFull(t *testing.T) {
	t.Parallel()
	w := world{browser.Start(t, quick), browser.Serve(t, served(t, noFiles))}
	tab := w.Open(t, w.URL("/blank"))
	tab.Quota(w.URL(""), 500_000) // Chromium asks once in 30 s how much room there is
	begin(tab, named("worker", "full", "Ann"))
	beginEditing(tab, endings.Unsaved)
	tab.MustEval("type('fits'); await autosave.flushNow(); type(Array.from({length: 2e5}, () => Math.random().toString(36)).join('')); null", nil)
	assert.Equal(t, "quota-exceeded", browser.Get[string](tab, "(await failure(autosave.flushNow())).code"))
	assert.Equal(t, "fits", browser.Get[string](tab, "current()"))
	tab.MustEval("text = 'fits again'; autosave.markDirty(); null", nil)
	tab.WaitFor("await autosave.flushNow().then(() => true, () => false)", browser.Limit) // Chromium first removes what it has refused
	assert.Equal(t, "fits again", browser.Get[string](tab, "current()"))
	assert.True(t, browser.Get[bool](tab, "(await autosave.history()).every(({bytes}) => bytes <= 'fits again'.length)"))
	tab.MustEval("await hf.close()", nil)
	tab.Quiet()
}

// A document stays in IndexedDB after the browser has learned to store files. Other documents are in files.
func TestDocumentStaysInIndexedDB(t *testing.T) {
	t.Parallel()
	var site atomic.Pointer[http.ServeMux]
	site.Store(served(t, noFiles))
	w := world{browser.Start(t, quick), browser.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { site.Load().ServeHTTP(w, r) }))}
	tab := w.editor(t, named("worker", "learns", "Ann"), "")
	tab.MustEval("type('saved'); await autosave.flushNow(); await hf.close()", nil)
	site.Store(pages(t, siteDir))
	for root, want := range map[string]string{"learns": "indexeddb saved", "other": "opfs "} {
		next := w.editor(t, named("worker", root, "Ann"), "")
		next.WaitFor("!autosave.readOnly && autosave.state().storage + ' ' + text === '"+want+"'", browser.Limit)
		next.MustEval("await hf.close()", nil)
		next.Quiet()
	}
	tab.Quiet()
}

// A page that may not use files types before its AutoSave is ready, and ends. The next page finds the text, although its drafts are in
// IndexedDB.
func TestTextBeforeReadyWithoutFiles(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	for name, without := range map[string]string{"missing": noFiles,
		"refused": "StorageManager.prototype.getDirectory = () => Promise.reject(new DOMException('planted', 'SecurityError'));"} {
		t.Run(name, func(t *testing.T) {
			n.files = served(t, without)
			root := "unready without " + name
			tab := w.earlyTab(t, n.never(named("worker", root, "Ann")))
			tab.MustEval(without+"edits("+onlyPreview+"); type('typed'); null", nil)
			tab.WaitFor("autosave.kept && autosave.folder", browser.Limit)
			tab.Navigate(w.URL("/blank?elsewhere"))
			tab.Close()
			next := w.earlyTab(t, named("worker", root, "Ben"))
			next.MustEval(without+"edits(); await autosave.ready; null", nil)
			next.WaitFor("!autosave.readOnly", browser.Limit)
			assert.Equal(t, "indexeddb", browser.Get[string](next, "autosave.state().storage"))
			next.WaitFor("text === 'typed'", browser.Limit)
			next.MustEval("await hf.close(); null", nil)
			assert.Empty(t, browser.Get[[]string](next, "uncaught"))
		})
	}
}

// slowStart delays the answers of the browser before the database is open.
const slowStart = `{
	const {open, databases} = IDBFactory.prototype
	IDBFactory.prototype.open = function (...named) {
		const asked = open.apply(this, named)
		Object.defineProperty(asked, 'onsuccess', {set(done) { asked.addEventListener('success', () => setTimeout(done, 3000)) }})
		return asked
	}
	IDBFactory.prototype.databases = async function () {
		await new Promise(done => setTimeout(done, 3000))
		return databases.call(this)
	}
};`

// slowBase delays the saved content that a draft builds on, for longer than a call of IndexedDB normally may take.
const slowBase = `{
	let open = 0 // drafts
	const {request} = LockManager.prototype, {get} = IDBObjectStore.prototype
	LockManager.prototype.request = function (name, ...how) {
		const held = request.call(this, name, ...how), over = () => open--
		if (name.startsWith('holdfast draft ')) open++, held.then(over, over)
		return held
	}
	IDBObjectStore.prototype.get = function (key) {
		const asked = get.call(this, key)
		if (!open || key[1] !== 'history') return asked
		return {get result() { return asked.result }, set onsuccess(done) { asked.onsuccess = () => setTimeout(done, 6000) }}
	}
}`

// A page that is left keeps the difference to its saved content in localStorage. The next editor waits for that content,
// however slow the storage is, and has the text before it edits.
func TestLastWordsOverSlowIndexedDB(t *testing.T) {
	t.Parallel()
	w := world{browser.Start(t, quick), browser.Serve(t, served(t, noFiles+slowStart+slowBase))}
	const options = "{debounceMs: 60000, idleMs: 60000, journalMs: 0}"
	ann := w.attacked(t, named("page", "slow", "Ann"), options)
	ann.MustEval(`
		const half = 'a line of sixteen'.repeat(1000)
		text = half + half; autosave.markDirty(); await autosave.flushNow()
		text = half + 'last words' + half; autosave.markDirty(); null`, nil)
	ann.Navigate(w.URL("/blank?elsewhere"))
	ben := w.attacked(t, named("page", "slow", "Ben"), options)
	ben.WaitFor("!autosave.readOnly", 2*browser.Limit)
	assert.Equal(t, "content", browser.Get[string](ben, "await places('last words')"))
	ben.WaitFor("text.includes('last words')", browser.Limit)
	ben.MustEval("await hf.close()", nil)
	ben.Quiet()
}

// lateDrafts stores a draft that contains "second" without telling the page, and no draft that contains "third".
const lateDrafts = `{
	const {put} = IDBObjectStore.prototype, silent = new WeakSet
	Object.defineProperty(IDBTransaction.prototype, 'oncomplete', {set(done) {
		this.addEventListener('complete', () => silent.has(this) || done())
	}})
	IDBObjectStore.prototype.put = function (value, key) {
		const text = key[1] === 'drafts' ? new TextDecoder().decode(value.content) : ''
		if (text.includes('third')) throw new DOMException('the disk is full', 'QuotaExceededError')
		if (text.includes('second')) silent.add(this.transaction)
		return put.call(this, value, key)
	}
};`

// A draft is stored after the page has given up waiting for that. The page's last words are a difference to it nevertheless.
func TestDifferenceToADraftThatWasStoredLate(t *testing.T) {
	t.Parallel()
	var site atomic.Pointer[http.ServeMux]
	site.Store(served(t, noFiles+lateDrafts))
	w := world{browser.Start(t, quick), browser.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { site.Load().ServeHTTP(w, r) }))}
	ann := w.attacked(t, named("page", "late", "Ann"), "{debounceMs: 60000, idleMs: 60000, journalMs: 100}")
	ann.MustEval(endings.StoresWord+`
		for (let i = 0; ; i++) try { localStorage.setItem('other ' + i, 'x'.repeat(10_000)) } catch { localStorage.removeItem('other 0'); break }
		globalThis.half = 'a line of sixteen'.repeat(10_000)
		globalThis.write = words => { text = half + words + half; autosave.markDirty() }
		write('first'); null`, nil)
	ann.WaitFor("await storesWord('first')", browser.Limit)
	ann.MustEval("write('second'); null", nil)
	ann.WaitFor("Object.keys(localStorage).some(key => key.startsWith('holdfast:draft:'))", browser.Limit) // it gave up
	require.True(t, browser.Get[bool](ann, "await storesWord('second')"))
	ann.MustEval("write('third'); null", nil)
	ann.Navigate(w.URL("/blank?elsewhere"))

	site.Store(served(t, noFiles))
	ben := w.attacked(t, named("page", "late", "Ben"), endings.Unsaved)
	ben.WaitFor("!autosave.readOnly && text.includes('third')", browser.Limit)
	ben.MustEval("await hf.close()", nil)
	ben.Quiet()
}

// lateAnswers delays the report of each stored draft to the page.
const lateAnswers = `{
	const {put} = IDBObjectStore.prototype, late = new WeakSet
	Object.defineProperty(IDBTransaction.prototype, 'oncomplete', {set(done) {
		this.addEventListener('complete', () => late.has(this) ? setTimeout(done, 2000) : done())
	}})
	IDBObjectStore.prototype.put = function (value, key) {
		if (key[1] === 'drafts' && value.content) late.add(this.transaction)
		return put.call(this, value, key)
	}
};`

// A text is saved before the page learns that its draft is stored. The draft is then emptied, and the page's last words are a
// difference to the saved text, not to the draft.
func TestDraftIsStoredAfterItsTextIsSaved(t *testing.T) {
	t.Parallel()
	w := world{browser.Start(t, quick), browser.Serve(t, served(t, noFiles+lateAnswers))}
	ann := w.attacked(t, named("page", "late answers", "Ann"), "{debounceMs: 60000, idleMs: 60000, journalMs: 3000}")
	ann.MustEval(endings.StoresWord+`
		localStorage.setItem('other', 'x'.repeat(5_000_000))
		globalThis.half = 'a line of sixteen'.repeat(10_000)
		globalThis.write = words => { text = half + words + half; autosave.markDirty() }
		write('first'); null`, nil)
	ann.WaitFor("await storesWord('first')", browser.Limit)
	ann.MustEval("await autosave.flushNow(); null", nil)
	ann.WaitFor("!await storesWord('first', '', 'drafts')", browser.Limit)
	ann.MustEval("write('second'); null", nil)
	ann.Navigate(w.URL("/blank?elsewhere"))

	ben := w.attacked(t, named("page", "late answers", "Ben"), endings.Unsaved)
	ben.WaitFor("!autosave.readOnly && text.includes('second')", browser.Limit)
	ben.MustEval("await hf.close()", nil)
	ben.Quiet()
}

// The attacks on unsaved text, over IndexedDB. One browser serves all of them.
func TestNothingLostInIndexedDB(t *testing.T) {
	t.Parallel()
	form, setups := endings.Brief, []endings.Setup{{Host: "worker", Strategy: "web-lock"}, {Host: "page", Strategy: "web-lock"}}
	options := quick
	if *full {
		form, options = endings.Full, whole
	}
	stage := browserStage{cutOff{world: world{browser.Start(t, options), browser.Serve(t, served(t, noFiles))}, options: options}}
	for i, a := range endings.Attacks {
		switch {
		case a.Server, a.Needs == endings.Suspending: // a lease without a record does not expire for others
			continue
		case !*full && a.Needs != "":
			continue
		}
		t.Run(a.Name, func(t *testing.T) {
			in := setups
			if !*full {
				in = setups[i%2:][:1]
			}
			a.PlayIn(t, form, in, func(*testing.T) endings.Stage { return stage })
		})
	}
}

// browserStage is a browser whose pages store in IndexedDB.
type browserStage struct{ cutOff }

// WaitStored asks the database: its own files may contain a word before the transaction is complete.
func (s browserStage) WaitStored(t *testing.T, word string) {
	t.Helper()
	tab := s.world.Open(t, s.URL("/blank"))
	tab.MustEval(endings.StoresWord+"; null", nil)
	tab.WaitFor("await storesWord('"+word+"')", browser.Limit)
	tab.Close()
}
