package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// held says whether the browser knows a holder of the lock of a document.
func held(tab *browser.Tab, name string) bool {
	return browser.Get[bool](tab, fmt.Sprintf("(await navigator.locks.query()).held.some(({name}) => name === '%s')", name))
}

// grabs makes a page take a lock as often as it can. It counts in grabbed how often that was possible.
const grabs = `
	globalThis.grabbed = 0
	globalThis.grabbing = true
	const grab = () => navigator.locks.request('%s', {ifAvailable: true}, lock => { grabbed += lock ? 1 : 0 }).then(() => grabbing && setTimeout(grab))
	grab()
	null`

// A page that certainly may edit does so while the Wasm is loading. It holds the lock, and the runtime takes over the
// lock, the text and its journal.
func TestEditableWhileTheRuntimeLoads(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	for _, c := range []struct{ options, saved, lock string }{
		{"{}", "saved last", ""}, {"{}", "", ""}, {"{path: ['a b', 'Ü/x']}", "saved last", "//a b/Ü%2Fx"},
	} {
		eachHost(t, func(t *testing.T, host string) {
			root := fmt.Sprintf("editable %s %d%d", host, len(c.lock), len(c.saved))
			holdfast := named(host, root, "Ann")
			told := []string{"editable"}
			if c.saved != "" {
				w.saves(t, holdfast, c.options, c.saved)
				told = []string{"preview free: saved last", "editable: saved last"}
			}
			later, arrive := n.gated(holdfast)
			tab := w.earlyTab(t, later)
			tab.MustEval("edits("+c.options+"); await autosave.ready; null", nil)
			tab.WaitFor(fmt.Sprintf("told.length === %d && !autosave.readOnly", len(told)), browser.Limit)
			assert.True(t, held(tab, "holdfast:"+root+c.lock))
			assert.Equal(t, "idle", browser.Get[string](tab, "autosave.state().phase"))
			tab.MustEval("type(' and typed'); null", nil)
			assert.Equal(t, "debouncing", browser.Get[string](tab, "autosave.state().phase"))

			viewer := w.earlyTab(t, named(host, root, "Ben"))
			viewer.MustEval(fmt.Sprintf(grabs, "holdfast:"+root+c.lock), nil)
			viewer.MustEval("edits("+c.options+"); null", nil)
			viewer.WaitFor("told.includes('readonly')", browser.Limit)
			arrive()
			tab.WaitFor("told.includes('saved') && autosave.state().phase === 'idle'", browser.Limit)
			assert.Equal(t, append(told, "saved"), browser.Get[[]string](tab, "told"))
			assert.Equal(t, c.saved+" and typed", browser.Get[string](tab, "await current()"))
			assert.True(t, browser.Get[bool](tab, "autosave.lease.token > 0 && !autosave.readOnly"))
			assert.Empty(t, browser.Get[[]string](tab, "await texts()"))
			assert.Equal(t, 0, browser.Get[int](viewer, "grabbing = false, grabbed"), "the lock was free for a moment")
			tab.MustEval("type('!'); await autosave.dispose(); null", nil)
			viewer.WaitFor("!autosave.readOnly", browser.Limit)
			assert.Equal(t, c.saved+" and typed!", browser.Get[string](viewer, "await current()"))
			for _, tab := range []*browser.Tab{tab, viewer} {
				tab.MustEval("await hf.close()", nil)
				assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
				tab.Close()
			}
		})
	}
}

// never are the options of a Holdfast whose Wasm never arrives.
func (n *network) never(holdfast string) string {
	options, _ := n.gated(holdfast)
	return options
}

// A page is not told early that it may edit where that is not certain.
func TestNotEditableBeforeTheRuntimeRuns(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	for _, c := range []struct{ name, holdfast, before, options string }{
		{"held", "", "navigator.locks.request('holdfast:ROOT', () => new Promise(() => {})); null", "{}"},
		{"held shared", "", "navigator.locks.request('holdfast:ROOT', {mode: 'shared'}, () => new Promise(() => {})); null", "{}"},
		{"held around", "", "navigator.locks.request('holdfast:ROOT', () => new Promise(() => {})); null", "{path: ['a']}"},
		{"file", ", strategy: 'file-lock'", "", "{}"},
		{"server", ", server: {url: 'http://127.0.0.1:1'}", "", "{}"},
		{"options", "", "", "{lock: {ttlMs: 20000}}"},
		{"given up", "", "", "{lock: {signal: AbortSignal.abort()}}"},
		{"refused option", "", "", "{debounceMs: 500, idleMs: 100}"},
		{"text left behind", "", "localStorage.setItem('holdfast:draft:ROOT/autosave:x', '{}'); null", "{}"},
		{"draft", "", `
			let folder = await navigator.storage.getDirectory()
			for (const name of ['ROOT', 'autosave', 'drafts']) folder = await folder.getDirectoryHandle(name, {create: true})
			const stream = await (await folder.getFileHandle('x', {create: true})).createWritable()
			await stream.write('a draft of a newer version')
			await stream.close()
			null`, "{}"},
		{"damaged", "", `
			let folder = await navigator.storage.getDirectory()
			for (const name of ['ROOT', 'autosave', 'index']) folder = await folder.getDirectoryHandle(name, {create: true})
			const stream = await (await folder.getFileHandle('1-1.json', {create: true})).createWritable()
			await stream.write('?')
			await stream.close()
			null`, "{}"},
		{"no Web Locks", "", "Object.defineProperty(navigator, 'locks', {value: undefined}); null", "{}"},
		{"typed", "", "", "{}, undefined, () => text); type('typed'"},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := "not early " + c.name
			tab := w.Open(t, w.URL("/blank"))
			begin(tab, "")
			tab.MustEval(early, nil)
			if c.before != "" {
				tab.MustEval(strings.ReplaceAll(c.before, "ROOT", root), nil)
			}
			tab.MustEval("await start("+n.never("{root: '"+root+"'"+c.holdfast+"}")+"); edits("+c.options+"); autosave.ready.catch(() => {}); null", nil)
			tab.MustEval("const {mayEdit} = await import('/holdfast-early.js'); await new Promise(done => setTimeout(done, 500)); null", nil)
			assert.Empty(t, browser.Get[[]string](tab, "told"))
			assert.True(t, browser.Get[bool](tab, "autosave.readOnly"))
			if c.name != "no Web Locks" && !strings.HasPrefix(c.name, "held") {
				eventually(t, func() bool { return !held(tab, "holdfast:"+root) }, "the lock is given back")
			}
			tab.MustEval("hf.close().catch(() => {}); null", nil)
			tab.Close()
		})
	}
}

// The drafts of a folder: a file, and what it begins with.
const draftFiles = `
	globalThis.draftFile = async root => {
		let folder = await navigator.storage.getDirectory()
		for (const name of [root, 'autosave', 'drafts']) folder = await folder.getDirectoryHandle(name)
		const [file, ...others] = await Array.fromAsync(folder.values())
		return others.length ? undefined : file
	}
	globalThis.draftBytes = async root => new Uint8Array(await (await (await draftFile(root)).getFile()).arrayBuffer())
	globalThis.fillDraft = async (root, bytes) => {
		const stream = await (await draftFile(root)).createWritable()
		await stream.write(Uint8Array.from(bytes))
		await stream.close()
	}
	globalThis.keepInLocalStorage = async (root, base, text, later) => {
		const {name: draft} = await draftFile(root), slots = new TextDecoder().decode(await draftBytes(root)).matchAll(/"number":(\d+)/g)
		const number = Math.max(...[...slots].map(([, number]) => +number)) + later
		const entry = {draft, number, base, at: Date.now(), ownerId: 'x', binary: false}
		localStorage['holdfast:draft:' + root + '/autosave:' + draft] = JSON.stringify({...entry, differences: [{length: 0, prefix: 0, suffix: 0, insert: text}]})
	}
	globalThis.isEmptyDraft = async root => new TextDecoder().decode(await draftBytes(root)).includes('"bytes":-1')
	null`

// A page that has saved leaves an empty draft behind as its tab is closed; if it ended right after the save, a draft
// whose text is saved, or such a text in localStorage. Nothing waits then. A later text of that page waits.
func TestEditableBesideADraftThatIsSavedAlready(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	for _, c := range []struct{ name, kept, editable string }{
		{"empty", "", "saved"},
		{"saved", "", "saved"},
		{"saved text in localStorage", "saved", "saved"},
		{"later text in localStorage", "later", "later"},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := "draft " + c.name
			holdfast := named("worker", root, "Ann")
			before := w.earlyTab(t, holdfast)
			before.MustEval(draftFiles, nil)
			before.MustEval("edits({debounceMs: 60000, idleMs: 60000}); null", nil) // so that the draft is read before its text is saved
			before.WaitFor("!autosave.readOnly && autosave.lease", browser.Limit)
			before.MustEval("type('saved'); null", nil)
			before.WaitFor(fmt.Sprintf(`new TextDecoder().decode(await draftBytes('%s')).includes('"bytes":5')`, root), browser.Limit) // the text is there before its slot is
			filled := browser.Get[[]int](before, fmt.Sprintf("[...await draftBytes('%s')]", root))
			before.MustEval("await autosave.flushNow(); null", nil)
			before.WaitFor(fmt.Sprintf("await isEmptyDraft('%s').catch(() => false)", root), browser.Limit)
			base := browser.Get[string](before, "(await autosave.history())[0].id")
			before.Close()

			later, arrive := n.gated(holdfast)
			tab := w.earlyTab(t, later)
			tab.MustEval(draftFiles, nil)
			if c.name == "saved" {
				bytes, err := json.Marshal(filled)
				require.NoError(t, err)
				tab.MustEval(fmt.Sprintf("await fillDraft('%s', %s); null", root, bytes), nil)
			}
			if c.kept != "" {
				tab.MustEval(fmt.Sprintf("await keepInLocalStorage('%s', '%s', '%s', %v); null", root, base, c.kept, c.kept == "later"), nil)
			}
			assert.Equal(t, c.name != "saved", browser.Get[bool](tab, fmt.Sprintf("await isEmptyDraft('%s')", root)))
			tab.MustEval("edits(); null", nil)
			tab.WaitFor("told.includes('preview free: saved')", browser.Limit)
			if c.editable == "saved" {
				tab.WaitFor("told.includes('editable: saved')", browser.Limit)
			}
			arrive()
			tab.WaitFor("autosave.lease && !Object.keys(localStorage).some(key => key.startsWith('holdfast:draft:"+root+"'))", browser.Limit)
			tab.WaitFor("told.length === 2", browser.Limit)
			assert.Empty(t, browser.Get[[]string](tab, "await texts()"))
			assert.Equal(t, []string{"preview free: saved", "editable: " + c.editable}, browser.Get[[]string](tab, "told"))
			tab.Close()
		})
	}
}

// The previous page may take a while to end. The next page edits once the lock is free, still without Go.
func TestEditableOnceThePageBeforeHasEnded(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	const root = "ends slowly"
	holdfast := named("worker", root, "Ann")
	w.saves(t, holdfast, "{}", "saved")
	before := w.earlyTab(t, n.never(holdfast))
	before.MustEval("navigator.locks.request('holdfast:"+root+"', () => new Promise(done => { globalThis.free = done })); null", nil)
	tab := w.earlyTab(t, n.never(holdfast))
	tab.MustEval("edits(); null", nil)
	tab.WaitFor("told.includes('preview held: saved')", browser.Limit)
	w.saves(t, named("worker", root+" two", "Ann"), "{}", "in the meantime") // takes a while
	assert.Equal(t, []string{"preview held: saved"}, browser.Get[[]string](tab, "told"))
	before.MustEval("free(); null", nil)
	tab.WaitFor("told.includes('editable: saved') && !autosave.readOnly", browser.Limit)
	assert.Equal(t, []string{"preview held: saved", "editable: saved"}, browser.Get[[]string](tab, "told"))
	before.Close()
	tab.Close()
}

// A page that is reloaded edits early, although the worker of the previous page may still be ending.
func TestEditableAfterAReload(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	eachHost(t, func(t *testing.T, host string) {
		holdfast := named(host, "reloaded "+host, "Ann")
		tab := w.earlyTab(t, holdfast)
		tab.MustEval("edits(); null", nil)
		tab.WaitFor("!autosave.readOnly && autosave.lease", browser.Limit)
		tab.MustEval("type('saved'); await new Promise(done => setTimeout(done, 300)); await autosave.flushNow(); null", nil)
		tab.Reload()
		begin(tab, "")
		tab.MustEval("await start("+n.never(holdfast)+"); null", nil)
		tab.MustEval(early+"; edits(); null", nil)
		tab.WaitFor("told.includes('editable: saved')", browser.Limit)
		tab.Close()
	})
}

// Of two pages that start together, one edits early. The other gets its turn when that one leaves.
func TestTwoPagesStartTogether(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	eachHost(t, func(t *testing.T, host string) {
		for round := range 4 {
			root := fmt.Sprintf("together %s %d", host, round)
			a, arriveA := n.gated(named(host, root, "Ann"))
			b, arriveB := n.gated(named(host, root, "Ben"))
			first, second := w.earlyTab(t, a), w.earlyTab(t, b)
			done := make(chan struct{})
			go func() { defer close(done); first.MustEval("edits(); null", nil) }()
			second.MustEval("edits(); null", nil)
			<-done
			eventually(t, func() bool { return browser.Get[int](first, "told.length")+browser.Get[int](second, "told.length") > 0 }, "one edits")
			if browser.Get[int](second, "told.length") > 0 {
				first, second = second, first
			}
			first.MustEval("type('mine'); null", nil)
			arriveA()
			arriveB()
			second.WaitFor("told.includes('readonly')", browser.Limit)
			first.WaitFor("told.includes('saved')", browser.Limit)
			assert.Equal(t, []string{"editable", "saved"}, browser.Get[[]string](first, "told"))
			first.MustEval("await hf.close(); null", nil)
			second.WaitFor("told.includes('editable: mine') && !autosave.readOnly", browser.Limit)
			second.MustEval("await hf.close(); null", nil)
			for _, tab := range []*browser.Tab{first, second} {
				assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
				tab.Close()
			}
		}
	})
}

// A lock that is stolen while the Wasm is loading ends the right to edit. The page keeps its text, as a draft, and gets
// its turn again.
func TestEarlyLockIsStolen(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	eachHost(t, func(t *testing.T, host string) {
		root := "early stolen " + host
		later, arrive := n.gated(named(host, root, "Ann"))
		tab := w.earlyTab(t, later)
		stealer := w.earlyTab(t, named(host, root, "Eve"))
		tab.MustEval("edits(); autosave.addEventListener('autosave:readonly', ({detail}) => { globalThis.unsaved = new TextDecoder().decode(detail.unsaved) }); null", nil)
		tab.WaitFor("told.length === 1", browser.Limit)
		tab.MustEval("type('mine'); null", nil)
		stealer.MustEval("lease = await hf.acquireProjectLock({steal: true}); null", nil)
		tab.WaitFor("told.includes('readonly')", browser.Limit)
		assert.True(t, browser.Get[bool](tab, "autosave.readOnly && unsaved === 'mine' && autosave.state().phase === 'readonly'"))
		arrive()
		tab.MustEval("await hf.ready; null", nil)
		stealer.WaitFor("(await hf.inspect()).pending.length === 1", browser.Limit)
		stealer.MustEval("await lease.release(); null", nil)
		tab.WaitFor("told.includes('saved') && !autosave.readOnly", browser.Limit)
		told := browser.Get[[]string](tab, "told.filter(one => one !== 'draft')")
		assert.Equal(t, []string{"editable", "readonly", "editable", "saved"}, told)
		assert.Equal(t, "mine", browser.Get[string](tab, "await current()"))
		for _, tab := range []*browser.Tab{tab, stealer} {
			tab.MustEval("await hf.close(); null", nil)
			assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
			tab.Close()
		}
	})
}

// Go finds another content than the early reader, which the lock should have prevented: the page is read-only until it
// has that content, and its text is a draft.
func TestTakeoverFindsAnotherContent(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	eachHost(t, func(t *testing.T, host string) {
		root := "other content " + host
		w.saves(t, named(host, root, "Ann"), "{}", "first")
		later, arrive := n.gated(named(host, root, "Ann"))
		tab := w.earlyTab(t, later)
		tab.MustEval("edits(); null", nil)
		tab.WaitFor("told.length === 2", browser.Limit)
		w.saves(t, named(host, root+" two", "Ben"), "{}", "second")
		tab.MustEval("type(' and mine'); null", nil)
		tab.MustEval(`
			const storage = await navigator.storage.getDirectory()
			const to = await (await storage.getDirectoryHandle('`+root+`')).getDirectoryHandle('autosave')
			const from = await (await storage.getDirectoryHandle('`+root+` two')).getDirectoryHandle('autosave')
			for (const part of ['index', 'history']) {
				const source = await from.getDirectoryHandle(part), target = await to.getDirectoryHandle(part)
				for await (const file of source.values()) {
					const stream = await (await target.getFileHandle(file.name, {create: true})).createWritable()
					await stream.write(await file.getFile())
					await stream.close()
				}
			}
			null`, nil)
		arrive()
		tab.WaitFor("told.includes('editable: second') && !autosave.readOnly", browser.Limit)
		told := browser.Get[[]string](tab, "told.filter(one => one !== 'draft')")
		assert.Equal(t, []string{"preview free: first", "editable: first", "readonly", "editable: second"}, told)
		tab.WaitFor("(await texts()).includes('first and mine')", browser.Limit)
		tab.MustEval("await hf.close(); null", nil)
		assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
		tab.Close()
	})
}
