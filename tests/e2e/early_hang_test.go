package e2e

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// shortLimit makes the limit of a download one second.
const shortLimit = `{
	const real = setTimeout
	globalThis.setTimeout = (run, ms, ...args) => real(run, ms === 30_000 || ms === 60_000 ? 1000 : ms, ...args)
} null`

// The module that starts Go does not arrive, so the page does not ask for the Wasm. Calls reject with "load-failed" within
// the limit. The page goes on editing, its text is kept, and it is saved once the page has asked for the module again.
func TestEarlyWhileTheModuleOfTheHostHangs(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	for host, module := range map[string]string{"worker": "/holdfast-host.js", "page": "/holdfast-page.js"} {
		t.Run(host, func(t *testing.T) {
			gate := n.failThenHold(module, stall)
			root := "module hangs " + host
			tab := w.Open(t, w.URL("/blank"))
			begin(tab, "")
			tab.MustEval(shortLimit, nil)
			tab.MustEval("await start("+named(host, root, "Ann")+"); null", nil)
			tab.MustEval(early, nil)
			tab.MustEval("edits(); globalThis.failed = failure(hf.inspect()); null", nil)
			tab.WaitFor("told.includes('editable') && !autosave.readOnly", browser.Limit)
			tab.MustEval("type('typed'); null", nil)
			tab.WaitFor("Object.keys(localStorage).some(key => key.startsWith('holdfast:draft:"+root+"/'))", browser.Limit)
			assert.Equal(t, "load-failed", browser.Get[event](tab, "await failed")["code"])
			assert.False(t, browser.Get[bool](tab, "autosave.readOnly"))
			close(gate)
			tab.WaitFor("told.includes('saved')", browser.Limit)
			assert.Equal(t, "typed", browser.Get[string](tab, "await current()"))
			assert.Equal(t, []string{"editable", "saved"}, browser.Get[[]string](tab, "told"))
			assert.Empty(t, browser.Get[[]string](tab, "await texts()"))
			assert.Equal(t, map[string]int{"worker": 1, "page": 2}[host], tab.Workers())
			tab.MustEval("await hf.close(); null", nil)
			tab.WaitFor("(await locks()).held === 0", browser.Limit)
			assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
			tab.Close()
		})
	}
}

// inLocalStorage says whether an entry of the document contains the text.
func inLocalStorage(root, text string) string {
	return fmt.Sprintf("Object.entries(localStorage).some(([key, value]) => key.startsWith('holdfast:draft:%s/') && value.includes('%s'))", root, text)
}

// The script of the worker that writes the journal does not arrive. After some seconds, the text is in localStorage,
// while the page lives. If the script arrives later, its first write has an older text, which replaces nothing.
func TestEarlyWhileTheWorkerHangs(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	for host, script := range map[string]string{"worker": "/holdfast-worker.js", "page": "/holdfast-helper.js"} {
		for _, arrives := range []string{"never", "late"} {
			t.Run(host+"/"+arrives, func(t *testing.T) {
				root := "worker hangs " + host + " " + arrives
				gate, gone := make(chan struct{}), make(chan struct{})
				n.fail(script, func(w http.ResponseWriter, r *http.Request) {
					select {
					case <-gate:
						n.files.ServeHTTP(w, r)
					case <-gone: // Chromium keeps the request of a page that has crashed, and the next one for this URL waits
						panic(http.ErrAbortHandler)
					}
				})
				tab := w.earlyTab(t, n.never(named(host, root, "Ann")))
				tab.MustEval(`
					globalThis.writes = 0
					const {postMessage} = Worker.prototype
					Worker.prototype.postMessage = function (message, ...args) {
						if ((message.method ?? message.args?.[0]) !== 'write' || ++writes === 1) postMessage.call(this, message, ...args)
					}
					edits()
					const wait = ms => new Promise(done => setTimeout(done, ms))
					globalThis.typesOn = async () => {
						type('typed')
						while (writes === 0) await wait(5) // until the journal has the first snapshot
						type(' on')
					}
					null`, nil)
				tab.WaitFor("told.includes('editable') && !autosave.readOnly", browser.Limit)
				tab.MustEval("await typesOn(); null", nil)
				tab.WaitFor(inLocalStorage(root, "typed on"), browser.Limit)
				assert.Equal(t, 1, browser.Get[int](tab, "writes"), "writes that wait for the script")
				if arrives == "late" {
					close(gate)
					tab.WaitFor("writes === 2", browser.Limit) // the first one has ended
				}
				tab.Crash()
				close(gone)
				w.finds(t, named(host, root, "Ben"), "typed on")
			})
		}
	}
}

// A page in which nothing was typed ends its AutoSave while the writer of drafts hangs. It gives the lock back at once.
func TestEarlyDisposeWhileTheWorkerHangs(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	for host, script := range map[string]string{"worker": "/holdfast-worker.js", "page": "/holdfast-helper.js"} {
		t.Run(host, func(t *testing.T) {
			root := "dispose hangs " + host
			gate := make(chan struct{})
			n.fail(script, func(http.ResponseWriter, *http.Request) { <-gate })
			tab := w.earlyTab(t, n.never(named(host, root, "Ann")))
			tab.MustEval("edits(); null", nil)
			tab.WaitFor("told.includes('editable') && !autosave.readOnly", browser.Limit)
			tab.MustEval("globalThis.disposed = false; autosave.dispose().finally(() => { disposed = true }); null", nil)
			tab.WaitFor("disposed || (await locks()).held === 0", browser.Limit)
			assert.False(t, browser.Get[bool](tab, "disposed"), "the lock was held until the limit of the call")
			close(gate)
			tab.MustEval("hf.close().catch(() => {}); null", nil)
			tab.Close()
		})
	}
}

// A page is put into the back/forward cache in the middle of a try to edit early. Another page edits meanwhile.
func TestSleepInATryToEditEarly(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	eachHost(t, func(t *testing.T, host string) {
		root := "sleep in a try " + host
		later, arrive := n.gated(named(host, root, "Ann"))
		tab := w.earlyTab(t, later)
		tab.MustEval(`{
			const {getDirectory} = StorageManager.prototype, wait = new Promise(done => { globalThis.go = done })
			globalThis.reads = 0
			StorageManager.prototype.getDirectory = async function () { reads++; await wait; return getDirectory.call(this) }
		} edits(); null`, nil)
		tab.WaitFor("(await locks()).held === 1", browser.Limit)
		first := browser.Get[int](tab, "reads")
		tab.WaitFor(fmt.Sprintf("reads > %d && (await locks()).held === 1", first), browser.Limit) // the first try took too long
		tab.MustEval("dispatchEvent(new PageTransitionEvent('pagehide', {persisted: true})); null", nil)
		other := w.earlyTab(t, named(host, root, "Ben"))
		other.MustEval("edits(); null", nil)
		other.WaitFor("!autosave.readOnly", browser.Limit)
		other.MustEval("type('other'); await autosave.flushNow(); null", nil)
		tab.MustEval("await new Promise(done => setTimeout(done, 1500)); null", nil) // a try is given up after a second
		tab.MustEval("dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true})); go(); null", nil)
		tab.WaitFor("told.length > 0", browser.Limit)
		assert.True(t, browser.Get[bool](tab, "autosave.readOnly"))
		arrive()
		tab.WaitFor("told.some(one => one.startsWith('readonly'))", browser.Limit)
		other.MustEval("type('!'); await hf.close(); null", nil)
		tab.WaitFor("!autosave.readOnly && text === 'other!'", browser.Limit)
		assert.Equal(t, []string{"preview held: other", "readonly", "editable: other!"}, browser.Get[[]string](tab, "told"))
		assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
		tab.Close()
		other.Close()
	})
}

// A page edits early, and waits for its next attempt to load the runtime. A call of the page loads it meanwhile, and the runtime can never
// run. The page has no lock then, and learns it.
func TestEarlyRuntimeFailsForGood(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		root := "fails for good " + host
		tab := w.Open(t, w.URL("/blank"))
		begin(tab, "")
		tab.MustEval(`{
			const real = setTimeout, {fetch} = globalThis
			globalThis.setTimeout = (run, ms, ...args) => real(run, ms === 1000 ? 600_000 : ms, ...args) // the next attempt
			const answers = [() => new Promise((_, fail) => { globalThis.fail = fail }), () => new Response(Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0))]
			globalThis.fetch = async (url, ...more) => String(url).endsWith('.wasm') ? answers.shift()() : fetch(url, ...more)
		}`+early, nil)
		tab.MustEval("await start("+named(host, root, "Ann")+"); edits(); null", nil)
		tab.WaitFor("told.includes('editable') && !autosave.readOnly && globalThis.fail", browser.Limit)
		tab.MustEval("fail(new TypeError('offline')); result = await failure(hf.ready); null", nil)
		assert.Equal(t, "load-failed", browser.Get[event](tab, "result")["code"])
		tab.MustEval("type('typed'); autosave.addEventListener('autosave:readonly', ({detail}) => { globalThis.why = detail }); null", nil)
		assert.Equal(t, "unsupported", browser.Get[event](tab, "await failure(hf.inspect())")["code"])
		assert.False(t, held(tab, "holdfast:"+root))
		if err := tab.Wait("globalThis.why && autosave.readOnly", browser.Limit/6); err != nil {
			t.Errorf("the page edits without a lock: %v", err)
		} else {
			assert.Equal(t, []string{"runtime-crashed", "unsupported", "typed"}, browser.Get[[]string](tab, "[why.reason, why.error.code, new TextDecoder().decode(why.unsaved)]"))
		}
		tab.WaitFor(inLocalStorage(root, "typed"), browser.Limit)
		assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
		tab.Crash()
		w.finds(t, named(host, root, "Ben"), "typed")
	})
}

// A page that edits early gets an answer at once when it asks whether it may. If it has lost the lock, its question waits for the runtime,
// but not for a download that fails.
func TestEarlyPageAsksToEdit(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	eachHost(t, func(t *testing.T, host string) {
		root := "early asks " + host
		missing := fmt.Sprintf("/missing%d.wasm", gates.Add(1))
		gate := n.hold(missing)
		tab := w.earlyTab(t, fmt.Sprintf("{...%s, wasmURL: '%s'}", named(host, root, "Ann"), missing))
		tab.MustEval("edits(); null", nil)
		tab.WaitFor("told.includes('editable') && !autosave.readOnly", browser.Limit)
		tab.MustEval("globalThis.asked = 0; autosave.requestEdit().then(() => { asked++ }, () => {}); null", nil)
		if err := tab.Wait("asked === 1", browser.Limit); err != nil {
			t.Errorf("the page edits, and asks forever: %v", err)
		}
		tab.MustEval("await navigator.locks.request('holdfast:"+root+"', {steal: true}, () => {}); null", nil)
		tab.WaitFor("autosave.readOnly", browser.Limit)
		tab.MustEval("globalThis.refusal = failure(autosave.requestEdit()).then(({code}) => { refusal = code }); null", nil)
		close(gate)
		if err := tab.Wait("refusal === 'load-failed'", browser.Limit/3); err != nil {
			t.Errorf("nobody hears that the download has failed: %v", err)
		}
		tab.MustEval("hf.close().catch(() => {}); null", nil)
		tab.Close()
	})
}
