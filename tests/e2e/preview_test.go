package e2e

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
	"github.com/holdfast-dev/holdfast/tests/endings"
)

// early gives a page an editor that exists before the runtime: `edits` begins, and `told` has its events.
const early = `{
const decode = bytes => new TextDecoder().decode(bytes)
globalThis.edits = (options, onPreview, take = () => text) => {
	globalThis.told = []
	globalThis.text = ''
	globalThis.autosave = hf.createAutoSave(take, options)
	for (const type of ['preview', 'editable', 'readonly', 'draft', 'saved']) autosave.addEventListener('autosave:' + type, ({detail}) => {
		told.push(type + (detail.held === undefined ? '' : detail.held ? ' held' : ' free') + (detail.content ? ': ' + decode(detail.content) : ''))
		if (detail.content) text = decode(detail.content)
		if (type === 'preview') onPreview?.()
	})
}
globalThis.type = more => { text += more; autosave.markDirty() }
globalThis.current = async () => decode(await autosave.read('current'))
globalThis.texts = async () => Promise.all((await autosave.drafts()).map(async ({id}) => decode(await autosave.read(id))))
}
null`

// earlyTab opens a page with a Holdfast, whose runtime may still be loading.
func (w world) earlyTab(t *testing.T, holdfast string) *browser.Tab {
	t.Helper()
	tab := w.Open(t, w.URL("/blank"))
	begin(tab, "")
	tab.MustEval("await start("+holdfast+"); null", nil)
	tab.MustEval(early, nil)
	return tab
}

// gated returns the options of a Holdfast whose runtime arrives when arrive is called. Its URL is its own, because a
// browser makes one of two requests for the same URL wait.
func (n *network) gated(holdfast string) (options string, arrive func()) {
	gate := make(chan struct{})
	path := fmt.Sprintf("/gated%d.wasm", gates.Add(1))
	n.fail(path, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-gate:
			r.URL.Path = "/holdfast.wasm"
			n.files.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	})
	return fmt.Sprintf("{...%s, wasmURL: '%s'}", holdfast, path), func() { close(gate) }
}

var gates atomic.Int64

// onlyPreview are options of an AutoSave that edits only once the runtime runs.
const onlyPreview = "{lock: {ttlMs: 30000}}"

// saves saves a text in a page of its own, which ends.
func (w world) saves(t *testing.T, holdfast, options, text string) {
	t.Helper()
	tab := w.earlyTab(t, holdfast)
	tab.MustEval(fmt.Sprintf("edits(%s); await autosave.ready; null", options), nil)
	tab.WaitFor("!autosave.readOnly", browser.Limit)
	tab.MustEval(fmt.Sprintf("text = '%s'; autosave.markDirty(); await autosave.flushNow(); await hf.close()", text), nil)
	tab.Close()
}

// The page sees what was saved last while the Wasm is loading, once, and before it is known who edits.
func TestPreviewWhileTheRuntimeLoads(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	for _, options := range []string{onlyPreview, "{...(" + onlyPreview + "), path: ['a b', 'Ü/x']}"} {
		eachHost(t, func(t *testing.T, host string) {
			holdfast := named(host, "preview "+host, "Ann")
			w.saves(t, holdfast, options, "saved last")
			never, _ := n.gated(holdfast)
			waits := w.earlyTab(t, never)
			waits.MustEval("edits("+options+"); null", nil)
			waits.WaitFor("told.length > 0", browser.Limit)
			assert.True(t, browser.Get[bool](waits, "autosave.readOnly && autosave.state().phase === 'awaiting-lock'"))

			later, arrive := n.gated(holdfast)
			editor := w.earlyTab(t, later)
			editor.MustEval("edits("+options+"); null", nil)
			editor.WaitFor("told.length === 1", browser.Limit)
			arrive()
			editor.WaitFor("told.length === 2", browser.Limit)
			assert.Equal(t, []string{"preview free: saved last", "editable: saved last"}, browser.Get[[]string](editor, "told"))

			later, arrive = n.gated(holdfast)
			viewer := w.earlyTab(t, later)
			viewer.MustEval("edits("+options+"); null", nil)
			viewer.WaitFor("told.length === 1", browser.Limit)
			arrive()
			viewer.WaitFor("told.length === 2", browser.Limit)
			assert.Equal(t, []string{"preview held: saved last", "readonly"}, browser.Get[[]string](viewer, "told"))
			assert.Equal(t, []string{"preview free: saved last"}, browser.Get[[]string](waits, "told"))
			for _, tab := range []*browser.Tab{viewer, editor, waits} {
				assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
				tab.Close()
			}
		})
	}
}

// A page that has typed, ends, has switched AutoSave off or does not listen gets no preview. A preview that cannot be
// loaded, or whose file is damaged, does not keep the page from editing.
func TestNoPreview(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	holdfast := named("worker", "none", "Ann")
	w.saves(t, holdfast, "{}", "saved last")
	n.count("/holdfast-preview.js")
	for _, c := range []struct {
		name, begin string
		fetched     bool
		told        []string
	}{
		{"typed", "edits(); type('mine'); null", true, []string{"editable: saved last"}},
		{"switched off", "edits({enabled: false}); null", false, nil},
		{"disposed", "edits(); await autosave.dispose()", true, nil},
		{"closed", "edits(); await hf.close()", true, nil},
		{"nobody listens", "globalThis.told = []; globalThis.autosave = await hf.initAutoSave(() => ''); null", true, []string{}},
		{"not found", "edits(); null", true, []string{"editable: saved last"}},
		{"stalled", "edits(); null", true, []string{"editable: saved last"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			switch c.name {
			case "not found":
				n.fail("/holdfast-preview.js", http.NotFound)
			case "stalled":
				n.fail("/holdfast-preview.js", stall)
			}
			tab := w.earlyTab(t, holdfast)
			tab.MustEval(c.begin, nil)
			tab.MustEval("await autosave.ready.catch(() => {}); null", nil)
			if c.told != nil {
				tab.WaitFor(fmt.Sprintf("told.length >= %d && !autosave.readOnly", len(c.told)), browser.Limit)
				assert.Equal(t, c.told, browser.Get[[]string](tab, "told.filter(one => !one.startsWith('draft'))"))
			}
			assert.False(t, browser.Get[bool](tab, "told.some(one => one.startsWith('preview'))"))
			if c.fetched { // the request of a page that ends at once may be on its way
				eventually(t, func() bool { return n.count("/holdfast-preview.js") > 0 }, "the module is not fetched")
			} else {
				assert.Zero(t, n.count("/holdfast-preview.js"))
			}
			assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
			tab.MustEval("await hf.close().catch(() => {}); null", nil)
			tab.Close()
		})
	}
}

// The newest content is damaged: the page is not shown a content that the runtime does not load.
func TestNoPreviewOfDamagedContent(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	holdfast := named("worker", "damaged", "Ann")
	w.saves(t, holdfast, "{}", "first")
	w.saves(t, holdfast, "{}", "second")
	tab := w.earlyTab(t, holdfast)
	tab.MustEval(`
		let folder = await navigator.storage.getDirectory()
		for (const name of ['damaged', 'autosave', 'history']) folder = await folder.getDirectoryHandle(name)
		const found = []
		for await (const file of folder.values()) if ((await (await file.getFile()).text()).startsWith('second')) found.push(file)
		const stream = await found[0].createWritable({keepExistingData: true})
		await stream.write('sEcond')
		await stream.close()
		edits()
		null`, nil)
	tab.WaitFor("told.length > 0", browser.Limit)
	assert.Equal(t, []string{"editable: first"}, browser.Get[[]string](tab, "told"))
	tab.Close()
}

// A document may have moved to IndexedDB, where the preview does not look: its files may be old.
func TestNoPreviewBesideADatabase(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	holdfast := named("worker", "moved", "Ann")
	w.saves(t, holdfast, "{}", "saved")
	tab := w.earlyTab(t, holdfast)
	tab.MustEval(`
		const asked = indexedDB.open('holdfast', 1)
		asked.onupgradeneeded = () => asked.result.createObjectStore('files')
		await new Promise(done => { asked.onsuccess = done })
		asked.result.close()
		edits()
		null`, nil)
	tab.WaitFor("told.length > 0", browser.Limit)
	assert.Equal(t, []string{"editable: saved"}, browser.Get[[]string](tab, "told"))
	tab.Close()
}

// Text that is typed on the preview belongs to the generation that the page shows: the next editor continues with it.
// An editor that marks the text which it loads has typed nothing.
func TestTypedOnThePreview(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	eachHost(t, func(t *testing.T, host string) {
		holdfast := named(host, "typed "+host, "Ann")
		w.saves(t, holdfast, "{}", `{"saved":0}`)
		const mark = "() => { autosave.markDirty(); marked = true }"
		for name, args := range map[string]string{"at once": mark, "later": "() => setTimeout(" + mark + ")", "later, as JSON": "() => setTimeout(" + mark + "), () => JSON.parse(text)"} {
			later, arrive := n.gated(holdfast)
			tab := w.earlyTab(t, later)
			tab.MustEval("globalThis.marked = false; edits("+onlyPreview+", "+args+"); null", nil)
			tab.WaitFor("marked", browser.Limit)
			arrive()
			tab.WaitFor("!autosave.readOnly && told.length >= 2", browser.Limit)
			tab.MustEval("await autosave.flushNow(); null", nil)
			assert.Empty(t, browser.Get[[]string](tab, "await texts()"), name)
			tab.MustEval("await hf.close()", nil)
			tab.Close()
		}
		later, arrive := n.gated(holdfast)
		tab := w.earlyTab(t, later)
		tab.MustEval("edits("+onlyPreview+", () => setTimeout(() => type(' and typed'))); null", nil)
		tab.WaitFor(`text === '{"saved":0} and typed'`, browser.Limit)
		require.Equal(t, []string{`preview free: {"saved":0}`}, browser.Get[[]string](tab, "told"))
		arrive()
		tab.WaitFor("told.length >= 2 && !autosave.readOnly", browser.Limit)
		tab.MustEval("await hf.close(); null", nil)
		tab.Close()
		next := w.earlyTab(t, holdfast)
		next.MustEval("edits(); null", nil)
		next.WaitFor("!autosave.readOnly", browser.Limit)
		assert.Equal(t, `{"saved":0} and typed`, browser.Get[string](next, "await current()"))
		assert.Empty(t, browser.Get[[]string](next, "await texts()"))
		next.MustEval("await hf.close(); null", nil)
		next.Close()
	})
}

// With a server, the page sees the copy of this browser once, whether or not the server answers.
func TestPreviewWithServer(t *testing.T) {
	t.Parallel()
	server := serve(t)
	ann := server.member(t, profiles(t, 1)[0], "worker", "Ann")
	ann.MustEval(early, nil)
	ann.MustEval("edits({path: ['plan']}); await autosave.ready; null", nil)
	ann.WaitFor("!autosave.readOnly", browser.Limit)
	ann.MustEval("type('known here'); await autosave.flushNow(); await autosave.dispose(); null", nil)
	// The preview comes first, however slow it is: the page waits for it, and not only for a second.
	ann.MustEval("const {setTimeout: real} = globalThis; globalThis.setTimeout = (run, ms, ...more) => real(run, ms === 1000 ? 60_000 : ms, ...more); null", nil)
	ann.MustEval("edits({path: ['plan']}); null", nil)
	ann.WaitFor("told.includes('editable: known here')", browser.Limit)
	ann.MustEval("globalThis.setTimeout = real; null", nil)
	assert.Equal(t, "preview: known here", browser.Get[string](ann, "told[0]"))
	ann.MustEval("await autosave.dispose()", nil)
	server.Stop()
	ann.MustEval("edits({path: ['plan']}); null", nil)
	ann.WaitFor("told.length === 2", browser.Limit)
	assert.ElementsMatch(t, []string{"preview: known here", "readonly"}, browser.Get[[]string](ann, "told"))
}

// A page that has removed its listener by a signal does not show the preview. So what it types does not replace the saved content.
func TestNoPreviewForARemovedListener(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	for i, stop := range []string{"const stop = new AbortController()", "const stop = {signal: AbortSignal.abort(), abort() {}}"} {
		for _, host := range turns(i, "worker", "page") {
			t.Run(host, func(t *testing.T) {
				holdfast := named(host, fmt.Sprint("unheard ", host, i), "Ann")
				w.saves(t, holdfast, onlyPreview, "saved last")
				later, arrive := n.gated(holdfast)
				tab := w.earlyTab(t, later)
				tab.MustEval(stop+`
					globalThis.text = ''
					globalThis.autosave = hf.createAutoSave(() => text, `+onlyPreview+`)
					autosave.addEventListener('autosave:preview', () => {}, stop)
					stop.abort()
					// Another AutoSave, whose listener stays, shows when the preview has come.
					const other = hf.createAutoSave(() => '', `+onlyPreview+`)
					await new Promise(done => other.addEventListener('autosave:preview', done))
					await other.dispose()
					await new Promise(done => setTimeout(done, 300)) // the other one may have been faster
					type('typed')
					null`, nil)
				arrive()
				tab.MustEval("await autosave.ready; await failure(hf.close()); null", nil)
				next := w.attacked(t, holdfast, endings.Unsaved)
				assert.Equal(t, "saved last", browser.Get[string](next, "current()"))
				assert.Equal(t, "draft", browser.Get[string](next, "await places('typed')"))
				next.MustEval("await hf.close(); null", nil)
			})
		}
	}
}
