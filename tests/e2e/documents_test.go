package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// document starts another AutoSave in a tab, under a name, with its own text and events.
const document = `
const documents = {}
const decode = bytes => new TextDecoder().decode(bytes)
const sidesOf = ({draft, base, mine, theirs}) => ({draft: plain(draft), ...(base && {base: decode(base)}), mine: decode(mine), theirs: decode(theirs)})
const openDocument = async (name, path, more) => {
	const doc = documents[name] = {text: '', told: [], drafts: [], conflicts: []}
	doc.autosave = await hf.initAutoSave(() => doc.text, {path, debounceMs: 20, ...more})
	for (const type of ['saved', 'readonly', 'editable']) doc.autosave.addEventListener('autosave:' + type, ({detail}) => {
		doc.told.push(type)
		if (type === 'editable') doc.offered = plain(detail.drafts)
		if (type === 'editable' && detail.content) doc.text = decode(detail.content)
		if (type === 'editable') globalThis.loads?.(detail)
	})
	doc.autosave.addEventListener('autosave:draft', ({detail}) => doc.drafts.push(plain(detail)))
	doc.autosave.addEventListener('autosave:conflict', ({detail}) => doc.conflicts.push(sidesOf(detail)))
	await new Promise(told => setTimeout(told))
	return doc
}
const write = async (name, text) => { documents[name].text = text; documents[name].autosave.markDirty(); await documents[name].autosave.flushNow() }
const saved = async name => decode(await documents[name].autosave.read('current'))
const texts = async name => Promise.all((await documents[name].autosave.history()).map(async g => decode(await documents[name].autosave.read(g.id))))
1`

// Each path is a document with its own editor, content and history, in one page and across pages, with both
// strategies.
func TestDocumentsArePaths(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	strategies(t, func(t *testing.T, options func(string) string) {
		ann, ben := w.tab(t, options("Ann")), w.tab(t, options("Ben"))
		long := fmt.Sprintf("['%s', 'b']", strings.Repeat("x", 900))
		for _, tab := range []*browser.Tab{ann, ben} {
			tab.MustEval(document, nil)
		}
		paths := map[string]string{"one": "['book', 'one']", "two": "['book', 'two']", "case": "['book', 'ONE']", "slash": "['book/one']", "dots": "['..', '.']", "long": long, "text": `['ünï 🔒%\\u0000']`}
		for name, path := range paths {
			ann.MustEval(fmt.Sprintf("await openDocument('%s', %s); await write('%s', 'text of %s')", name, path, name, name), nil)
		}
		for name := range paths {
			assert.Equal(t, "text of "+name, browser.Get[string](ann, fmt.Sprintf("saved('%s')", name)))
			assert.Equal(t, 1, browser.Get[int](ann, fmt.Sprintf("(await documents['%s'].autosave.history()).length", name)), name)
		}
		// Ben reads one, edits three, and is handed two.
		ben.MustEval("await openDocument('one', ['book', 'one']); await openDocument('two', ['book', 'two']); await openDocument('three', ['book', 'three'])", nil)
		assert.Equal(t, []bool{true, true, false}, browser.Get[[]bool](ben, "['one', 'two', 'three'].map(name => documents[name].autosave.readOnly)"))
		ben.WaitFor("documents.one.autosave.state().holder?.ownerName === 'Ann'", browser.Limit)
		assert.Equal(t, "text of one", browser.Get[string](ben, "saved('one')"))
		ben.MustEval("await documents.two.autosave.requestEdit()", nil)
		assert.Equal(t, "text of two", browser.Get[string](ben, "documents.two.text"))
		ann.WaitFor("documents.two.autosave.readOnly", browser.Limit)
		assert.False(t, browser.Get[bool](ann, "documents.one.autosave.readOnly"))
		ben.MustEval("await write('two', 'Ben was here')", nil)
		assert.Equal(t, "Ben was here", browser.Get[string](ann, "saved('two')"))
		// A document is a place of the project.
		assert.Contains(t, refused, tried(ben, "path: ['book', 'one']"))
		assert.Contains(t, refused, tried(ben, ""))
		assert.Equal(t, "granted", tried(ben, "path: ['book', 'four']"))
		for _, tab := range []*browser.Tab{ann, ben} {
			tab.MustEval("await hf.close()", nil)
			tab.Quiet()
		}
	})
}

// The document [] is the project itself: it uses the folder, the lock and the history of an AutoSave without a path.
func TestTheEmptyPathIsTheProject(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	tab := w.tab(t, at("worker", "no path"))
	tab.MustEval(document, nil)
	tab.MustEval("await openDocument('before', undefined); await write('before', 'kept'); await documents.before.autosave.dispose()", nil)
	tab.MustEval("await openDocument('after', [])", nil)
	tab.WaitFor("documents.after.text === 'kept'", browser.Limit)
	assert.Equal(t, []string{"autosave"}, browser.Get[[]string](tab, `await (async () => {
		const names = []
		for await (const name of (await (await navigator.storage.getDirectory()).getDirectoryHandle('no path')).keys()) if (!name.startsWith('.')) names.push(name)
		return names
	})()`))
	tab.MustEval("await hf.close()", nil)
	tab.Quiet()
}

// An AutoSave without a path locks the whole project, so that no page edits a document of it meanwhile, not even the
// same page. The two have separate contents, histories and drafts.
func TestADocumentBesideTheProject(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		ann, ben := w.pair(t, host, "beside "+host)
		ann.MustEval("await openDocument('all'); await write('all', 'project'); await openDocument('part', ['part'])", nil)
		assert.True(t, browser.Get[bool](ann, "!documents.all.autosave.readOnly && documents.part.autosave.readOnly"))
		ann.MustEval("documents.part.text = 'typed in the part'; documents.part.autosave.markDirty(); await openDocument('same', ['part'])", nil)
		assert.Equal(t, "read-only", browser.Get[event](ann, "await failure(documents.part.autosave.dispose())")["code"])
		assert.Equal(t, []int{0, 1}, browser.Get[[]int](ann, "Promise.all(['all', 'same'].map(async name => (await documents[name].autosave.drafts()).length))"))
		assert.Equal(t, "not-found", browser.Get[event](ann, "await failure(documents.all.autosave.resolveDraft((await documents.same.autosave.drafts())[0].id, 'discard'))")["code"])

		ann.MustEval("await documents.all.autosave.dispose(); await documents.same.autosave.dispose()", nil)
		ben.MustEval("await openDocument('part', ['part'])", nil)
		assert.Equal(t, "typed in the part", browser.Get[string](ben, "documents.part.text"), "the draft continues an empty document")
		assert.Equal(t, "Ann", browser.Get[string](ben, "(await documents.part.autosave.history())[0].ownerName"), "Ann has typed it")
		ann.MustEval("await openDocument('all')", nil)
		assert.True(t, browser.Get[bool](ann, "documents.all.autosave.readOnly"))
		ben.MustEval("await write('part', 'part')", nil)
		pinned := browser.Get[event](ben, "await documents.part.autosave.pin((await documents.part.autosave.history())[1].id, 'first')")
		assert.Equal(t, []any{"first", "Ann"}, []any{pinned["name"], pinned["ownerName"]})
		assert.Equal(t, "Ben", browser.Get[string](ben, "(await documents.part.autosave.history())[0].ownerName"))
		ben.MustEval("await documents.part.autosave.dispose()", nil)

		ann.WaitFor("!documents.all.autosave.readOnly", browser.Limit)
		assert.Equal(t, []string{"project"}, browser.Get[[]string](ann, "texts('all')"))
		for _, tab := range []*browser.Tab{ann, ben} {
			tab.MustEval("await hf.close()", nil)
			tab.Quiet()
		}
	})
}

// An option that no document can have is refused with its name before anything is locked or stored.
func TestOptionsThatNoDocumentHas(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	tab := w.tab(t, at("worker", "no such document"))
	for options, name := range map[string]string{
		"path: 'book'": "path", "path: ['']": "path", "path: ['\\ud800']": "path", "path: [7]": "path", "path: null": "path",
		"path: ['" + strings.Repeat("x", 1023) + "']": "path",
		"path: ['a'], lock: {path: ['b']}":            "lock.path",
		"lock: {path: ['b']}":                         "lock.path",
		"lock: {paths: [['b']]}":                      "lock.paths",
		"path: ['a'], lock: {slots: 2}":               "lock.slots",
		"lock: {mode: 'shared'}":                      "lock.mode",
		"enabled: false, lock: {mode: 'shared'}":      "lock.mode",
	} {
		failed := browser.Get[event](tab, "await failure(hf.initAutoSave(() => '', {"+options+"}))")
		assert.Equal(t, "invalid-argument", failed["code"], options)
		assert.Contains(t, failed["message"], name, options)
	}
	assert.Empty(t, browser.Get[[]string](tab, "types()"))
	tab.MustEval("globalThis.autosave = await hf.initAutoSave(() => '', {path: ['a'], lock: {path: ['a']}}); await autosave.dispose(); await hf.close()", nil)
	tab.Quiet()
}

// A page that requests a document also asks the pages that edit documents above and below it. A busy page is not
// stolen before its time is over.
func TestRequestEditAsksAroundAndBelow(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		root := "around " + host
		ben := w.editor(t, named(host, root, "Ben"), "{path: ['book', 'chapter']}")
		cleo := w.editor(t, named(host, root, "Cleo"), "{path: ['book', 'cover']}")
		ann := w.editor(t, named(host, root, "Ann"), "{path: ['book']}")
		for tab, text := range map[*browser.Tab]string{ben: "the chapter", cleo: "the cover"} {
			require.False(t, browser.Get[bool](tab, "autosave.readOnly"))
			tab.MustEval("type('"+text+"'); null", nil)
		}
		cleo.MustEval("hf.addEventListener('lock:handover-requested', e => e.detail.refuse('still typing'), {once: true}); null", nil)
		cleo.MustEval("setTimeout(() => { const until = now() + 1000; while (now() < until); }); null", nil)
		failed := browser.Get[event](ann, "await failure(autosave.requestEdit({force: true, graceMs: 10000}))")
		assert.Equal(t, "handover-refused", failed["code"])
		assert.Contains(t, failed["message"], "still typing")
		for _, tab := range []*browser.Tab{ben, cleo} {
			tab.WaitFor("!autosave.readOnly", browser.Limit) // Ben had offered the lock
		}

		ann.MustEval("await autosave.requestEdit(); type('the book'); null", nil)
		ben.WaitFor("autosave.readOnly", browser.Limit)
		ben.MustEval("await autosave.requestEdit(); type(', continued'); null", nil)
		ann.WaitFor("autosave.readOnly", browser.Limit)
		cleo.MustEval("await autosave.requestEdit(); null", nil) // from Ben, who got the lock from the book's editor
		ben.WaitFor("autosave.readOnly", browser.Limit)
		for tab, text := range map[*browser.Tab]string{ann: "the book", ben: "the chapter, continued", cleo: "the cover"} {
			assert.Equal(t, text, browser.Get[string](tab, "new TextDecoder().decode(await autosave.read('current'))"))
			assert.Empty(t, browser.Get[[]string](tab, "offered"), "everything was saved")
		}
		for _, tab := range []*browser.Tab{ann, ben, cleo} {
			tab.MustEval("await hf.close()", nil)
			tab.Quiet()
		}
	})
}

// A page waits to edit a book while a chapter of it changes hands.
func TestHandoverPassesAWaiterAround(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		root := "passes " + host
		ann := w.editor(t, named(host, root, "Ann"), "{path: ['book', 'chapter']}")
		cleo := w.editor(t, named(host, root, "Cleo"), "{path: ['book']}")
		ben := w.editor(t, named(host, root, "Ben"), "{path: ['book', 'chapter']}")
		ann.MustEval("type('the chapter'); null", nil)
		cleo.WaitFor("(await navigator.locks.query()).pending.some(({name, mode}) => name.endsWith('//book') && mode === 'exclusive')", browser.Limit)
		ben.MustEval("await autosave.requestEdit(); null", nil)
		ann.WaitFor("autosave.readOnly", browser.Limit)
		assert.True(t, browser.Get[bool](cleo, "autosave.readOnly"))
		assert.Equal(t, "the chapter", browser.Get[string](ben, "current()"))
		for _, tab := range []*browser.Tab{ann, ben, cleo} {
			tab.MustEval("await hf.close()", nil)
			tab.Quiet()
		}
	})
}
