package e2e

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// The Wasm is the largest file, so the browser asks for it after the modules with which a page shows its text and edits.
func TestModulesComeBeforeTheWasm(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	for host, module := range map[string]string{"worker": "/holdfast-host.js", "page": "/holdfast-page.js"} {
		t.Run(host, func(t *testing.T) {
			root := "modules first " + host
			gate := n.hold(module)
			n.count("/holdfast.wasm")
			tab := w.earlyTab(t, named(host, root, "Ann"))
			tab.MustEval("edits(); null", nil)
			tab.WaitFor("told.includes('editable')", browser.Limit)
			assert.Equal(t, 0, n.count("/holdfast.wasm"))
			close(gate)
			tab.MustEval("await hf.ready; null", nil)
			assert.Equal(t, 1, n.count("/holdfast.wasm"))
			quiet(t, tab)
		})
	}
}

// workerDies ends the worker of a page once its script runs.
func workerDies(t *testing.T, tab *browser.Tab, script string) {
	t.Helper()
	eventually(t, func() bool { return tab.Workers() == 1 }, "there is a worker")
	eventually(t, func() (runs bool) { tab.WorkerEval("self.onmessage !== null", &runs); return runs }, "its script runs")
	tab.EndWorker("setTimeout(() => { " + script + " }); null")
}

// A worker that dies while the Wasm is loading is replaced. The page goes on editing, and another worker has its text.
func TestEarlyWorkerDies(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	for name, script := range map[string]string{"ends": "self.close()", "fails": "throw new Error('no memory')"} {
		t.Run(name, func(t *testing.T) {
			root := "early worker " + name
			gate := make(chan struct{})
			opens := func(w http.ResponseWriter, r *http.Request) {
				select {
				case <-gate:
					n.files.ServeHTTP(w, r)
				case <-r.Context().Done():
				}
			}
			n.fail("/holdfast.wasm", opens)
			tab := w.typesEarly(t, named("worker", root, "Ann"))
			tab.WaitFor(journalled(root, " and typed"), browser.Limit)
			n.fail("/holdfast.wasm", opens)
			began := time.Now()
			workerDies(t, tab, script)
			tab.MustEval("type(' on'); null", nil)
			tab.WaitFor(journalled(root, " and typed on"), browser.Limit)
			t.Logf("the journal of the next worker has the text after %v", time.Since(began))
			assert.Equal(t, []string{"editable"}, browser.Get[[]string](tab, "told"))
			close(gate)
			tab.WaitFor("told.includes('saved') && autosave.state().phase === 'idle'", browser.Limit)
			assert.Equal(t, []string{"editable", "saved"}, browser.Get[[]string](tab, "told"))
			assert.Equal(t, " and typed on", browser.Get[string](tab, "await current()"))
			assert.Empty(t, browser.Get[[]string](tab, "await texts()"))
			quiet(t, tab)
		})
	}
}

// A worker that dies a fourth time within a minute, before Go runs, is not replaced. The page is read-only, and its text
// is kept.
func TestEarlyWorkerDiesAgainAndAgain(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	const root = "early worker dies"
	n.fail("/never.wasm", stall)
	tab := w.earlyTab(t, "{..."+named("worker", root, "Ann")+", wasmURL: '/never.wasm'}")
	tab.MustEval("edits({journalMs: 600_000}); null", nil)
	tab.WaitFor("told.includes('editable') && !autosave.readOnly", browser.Limit)
	tab.MustEval("type(' and typed'); autosave.addEventListener('autosave:readonly', ({detail}) => { globalThis.why = detail }); null", nil)
	for death := range 4 {
		assert.False(t, browser.Get[bool](tab, "autosave.readOnly"), "after %d deaths", death)
		n.fail("/never.wasm", stall)
		workerDies(t, tab, "self.close()")
		eventually(t, func() bool { return tab.Workers() == 0 }, "it is dead")
	}
	tab.WaitFor("told.includes('readonly')", browser.Limit)
	assert.True(t, browser.Get[bool](tab, "autosave.readOnly"))
	assert.Equal(t, "runtime-crashed", browser.Get[string](tab, "why.reason"))
	assert.Equal(t, " and typed", browser.Get[string](tab, "new TextDecoder().decode(why.unsaved)"))
	assert.Equal(t, "unsupported", browser.Get[event](tab, "await failure(hf.ready)")["code"])
	tab.WaitFor(inLocalStorage(root, " and typed"), browser.Limit)
	tab.WaitFor("(await locks()).held === 0", browser.Limit)
	assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
	tab.Crash()
	w.finds(t, named("worker", root, "Ben"), " and typed")
}

// A worker that dies while Go takes over is replaced. The page learns once that it is read-only, and its text is saved
// in the end.
func TestWorkerDiesDuringTheTakeover(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	for _, c := range []struct{ saved, call string }{
		{"", "args[0].arg?.lent"}, {"saved", "args[0].arg?.lent"},
		{"", "args[0].method === 'answer'"}, {"saved", "args[0].method === 'answer'"}, // the page asks only whether Go runs
	} {
		saved := c.saved
		t.Run(c.call+" saved "+saved, func(t *testing.T) {
			holdfast := named("worker", fmt.Sprintf("dies in the takeover %d%s", len(c.call), saved), "Ann")
			if saved != "" {
				w.saves(t, holdfast, "{}", saved)
			}
			gate := n.hold("/holdfast.wasm")
			tab := w.Open(t, w.URL("/blank"))
			begin(tab, "")
			tab.MustEval(`
				globalThis.calls = 0
				const {postMessage} = Worker.prototype
				Worker.prototype.postMessage = function(...args) {
					if (`+c.call+` && ++calls === 1) return // Go gets nothing before its worker dies
					postMessage.apply(this, args)
				}
				null`, nil)
			tab.MustEval("await start("+holdfast+"); null", nil)
			tab.MustEval(early, nil)
			tab.MustEval("edits(); null", nil)
			tab.WaitFor("told.some(one => one.startsWith('editable')) && !autosave.readOnly", browser.Limit)
			tab.MustEval("type(' and typed'); told.length = 0; null", nil)
			close(gate)
			tab.WaitFor("calls === 1", browser.Limit)
			tab.MustEval("type('!'); null", nil)
			tab.EndWorker("self.close()")
			tab.WaitFor("told.includes('readonly')", browser.Limit)
			tab.WaitFor("!autosave.readOnly && autosave.lease", browser.Limit)
			tab.MustEval("await autosave.flushNow(); null", nil)
			told := browser.Get[[]string](tab, "told.filter(one => one !== 'draft').map(one => one.slice(0, 8))")
			assert.Equal(t, []string{"readonly", "editable", "saved"}, told)
			assert.Equal(t, saved+" and typed!", browser.Get[string](tab, "await current()"))
			assert.Empty(t, browser.Get[[]string](tab, "await texts()"))
			quiet(t, tab)
		})
	}
}

// React's StrictMode creates each AutoSave twice, and ends the first one at once. The second one finds the lock free.
func TestEarlyAutoSaveIsMadeTwice(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	eachHost(t, func(t *testing.T, host string) {
		holdfast := named(host, "made twice "+host, "Ann")
		w.saves(t, holdfast, "{}", "saved")
		tab := w.earlyTab(t, n.never(holdfast))
		tab.MustEval("hf.createAutoSave(() => '').dispose(); edits(); null", nil)
		tab.WaitFor("told.includes('editable: saved')", browser.Limit)
		assert.Equal(t, []string{"preview free: saved", "editable: saved"}, browser.Get[[]string](tab, "told"))
		assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
		tab.Close()
	})
}

// A page whose AutoSave module could not be loaded at first edits early once it is there, also if the preview comes only
// then. It gets no event twice.
func TestEarlyModuleArrivesLate(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	eachHost(t, func(t *testing.T, host string) {
		for _, late := range []string{"", "the preview too"} {
			holdfast := named(host, "module late "+host+late, "Ann")
			w.saves(t, holdfast, "{}", "saved")
			gate := n.hold("/holdfast-preview.js")
			if late == "" {
				close(gate)
			}
			n.fail("/holdfast-autosave.js", http.NotFound)
			n.count("/holdfast-autosave.js")
			tab := w.earlyTab(t, n.never(holdfast))
			tab.MustEval("edits(); null", nil)
			if late != "" {
				asked := 0
				eventually(t, func() bool { asked += n.count("/holdfast-autosave.js"); return asked == 2 }, "the module is loaded again")
				close(gate)
			}
			tab.WaitFor("told.includes('editable: saved') && !autosave.readOnly", browser.Limit/3)
			assert.Equal(t, []string{"preview free: saved", "editable: saved"}, browser.Get[[]string](tab, "told"))
			assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
			tab.Close()
		}
	})
}
