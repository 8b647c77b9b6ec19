package e2e

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// typesEarly opens a page that edits and has typed while the Wasm is loading.
func (w world) typesEarly(t *testing.T, holdfast string) *browser.Tab {
	t.Helper()
	tab := w.earlyTab(t, holdfast)
	tab.MustEval("edits(); null", nil)
	tab.WaitFor("told.some(one => one.startsWith('editable')) && !autosave.readOnly", browser.Limit)
	tab.MustEval("type(' and typed'); null", nil)
	return tab
}

// finds opens a page with a runtime and requires that it edits this text.
func (w world) finds(t *testing.T, holdfast, want string) {
	t.Helper()
	tab := w.earlyTab(t, holdfast)
	tab.MustEval("edits(); null", nil)
	tab.WaitFor("!autosave.readOnly && autosave.lease", browser.Limit)
	tab.WaitFor(fmt.Sprintf("text === '%s'", want), browser.Limit)
	assert.Equal(t, want, browser.Get[string](tab, "await current()"))
	assert.Empty(t, browser.Get[[]string](tab, "await texts()"))
	tab.MustEval("await hf.close(); null", nil)
	assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
	tab.Close()
}

// journalled says whether the file of a draft contains the text.
func journalled(root, text string) string {
	return fmt.Sprintf(`await (async () => {
		let folder = await navigator.storage.getDirectory()
		for (const name of ['%s', 'autosave', 'drafts']) folder = await folder.getDirectoryHandle(name)
		for await (const file of folder.values()) if ((await (await file.getFile()).text()).includes('%s')) return true
	})().catch(() => false)`, root, text)
}

// Text that was typed while the Wasm was loading outlives every end of its page. The next page goes on with it.
func TestEarlyPageEnds(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	eachHost(t, func(t *testing.T, host string) {
		for name, end := range map[string]func(tab *browser.Tab){
			"closed":    (*browser.Tab).Close,
			"reloaded":  (*browser.Tab).Reload,
			"navigated": func(tab *browser.Tab) { tab.Navigate(w.URL("/blank?elsewhere")) },
			"crashed":   (*browser.Tab).Crash,
			"replaced":  func(tab *browser.Tab) { tab.MustEval("setTimeout(() => location.replace('/blank?left')); null", nil) },
		} {
			t.Run(name, func(t *testing.T) {
				for _, saved := range []string{"", "saved"} {
					root := fmt.Sprintf("early end %s %s %s", host, name, saved)
					holdfast := named(host, root, "Ann")
					if saved != "" {
						w.saves(t, holdfast, "{}", saved)
					}
					tab := w.typesEarly(t, n.never(holdfast))
					if name == "crashed" {
						// The journal writes the file, in a worker that exists before the runtime.
						tab.WaitFor(journalled(root, " and typed"), browser.Limit)
					}
					end(tab)
					w.finds(t, named(host, root, "Ben"), saved+" and typed")
				}
			})
		}
	})
}

// The calls of a page that edits early wait for the runtime, with the text of their moment.
func TestEarlyCallsWaitForTheRuntime(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	eachHost(t, func(t *testing.T, host string) {
		for _, call := range []string{"autosave.flushNow()", "autosave.dispose()", "hf.close()"} {
			root := fmt.Sprintf("early call %s %s", host, call)
			later, arrive := n.gated(named(host, root, "Ann"))
			tab := w.typesEarly(t, later)
			tab.MustEval("globalThis.called = "+call+"; text = 'emptied'; null", nil)
			arrive()
			tab.MustEval("await called; await hf.close(); null", nil)
			assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
			tab.Close()
			w.finds(t, named(host, root, "Ben"), " and typed")
		}
	})
}

// A page that ends its AutoSave while nothing loads leaves a draft and gives the lock back.
func TestEarlyDisposeLeavesADraft(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	eachHost(t, func(t *testing.T, host string) {
		root := "early draft " + host
		idle := w.earlyTab(t, n.never(named(host, root, "Ann")))
		idle.MustEval("edits(); null", nil)
		idle.WaitFor("!autosave.readOnly", browser.Limit)
		began := time.Now()
		idle.MustEval("await autosave.dispose(); null", nil)
		assert.Less(t, time.Since(began), 5*time.Second, "nothing was typed: there is nothing to wait for")
		assert.False(t, held(idle, "holdfast:"+root))

		tab := w.typesEarly(t, n.never(named(host, root, "Ann")))
		tab.MustEval("result = await failure(autosave.dispose()); null", nil)
		assert.Equal(t, "write-failed", browser.Get[event](tab, "result")["code"])
		assert.True(t, browser.Get[bool](tab, "autosave.readOnly"))
		assert.False(t, held(tab, "holdfast:"+root))
		for _, tab := range []*browser.Tab{idle, tab} {
			tab.MustEval("await hf.close(); null", nil)
			assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
			tab.Close()
		}
		w.finds(t, named(host, root, "Ben"), " and typed")
	})
}

// failThenHold answers the first request for a path with a fault, and lets all later ones wait until the gate is closed.
func (n *network) failThenHold(path string, fault http.HandlerFunc) (gate chan struct{}) {
	gate = make(chan struct{})
	var again http.HandlerFunc
	again = func(w http.ResponseWriter, r *http.Request) {
		n.fail(path, again)
		select {
		case <-gate:
			n.files.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}
	n.fail(path, func(w http.ResponseWriter, r *http.Request) {
		n.fail(path, again)
		fault(w, r)
	})
	return gate
}

// A download that fails or never ends leaves the page editable. It is repeated, and the text is saved then.
func TestEarlyPageOutlivesAFailedDownload(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	for i, c := range []struct {
		name, path string
		fault      http.HandlerFunc
	}{
		{"wasm not found", "/holdfast.wasm", http.NotFound},
		{"wasm cut off", "/holdfast.wasm", half(t, "holdfast.wasm", "application/wasm", false)},
		{"wasm stalled", "/holdfast.wasm", stall},
		{"worker not found", "/holdfast-worker.js", http.NotFound},
		{"page host not found", "/holdfast-page.js", http.NotFound},
	} {
		for _, host := range turns(i, "worker", "page") {
			if (c.path == "/holdfast-worker.js" && host == "page") || (c.path == "/holdfast-page.js" && host == "worker") {
				continue
			}
			t.Run(c.name+"/"+host, func(t *testing.T) {
				root := fmt.Sprintf("early download %s %s", host, c.name)
				gate := n.failThenHold(c.path, c.fault)
				tab := w.Open(t, w.URL("/blank"))
				begin(tab, "")
				tab.MustEval("const real = setTimeout; globalThis.setTimeout = (run, ms, ...args) => real(run, ms === 30_000 ? 1000 : ms, ...args); null", nil)
				tab.MustEval(early, nil)
				tab.MustEval("await start("+named(host, root, "Ann")+"); edits(); hf.ready.catch(({code}) => { globalThis.failed = code }); null", nil)
				tab.WaitFor("told.length > 0", browser.Limit)
				tab.MustEval("type('typed'); null", nil)
				tab.WaitFor("globalThis.failed === 'load-failed'", browser.Limit)
				assert.False(t, browser.Get[bool](tab, "autosave.readOnly"))
				tab.MustEval("type(' on'); null", nil)
				close(gate)
				tab.WaitFor("told.includes('saved') && autosave.state().phase === 'idle'", browser.Limit)
				assert.Equal(t, []string{"editable", "saved"}, browser.Get[[]string](tab, "told"))
				assert.Equal(t, "typed on", browser.Get[string](tab, "await current()"))
				assert.Empty(t, browser.Get[[]string](tab, "await texts()"))
				tab.MustEval("await hf.close(); null", nil)
				assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
				tab.Close()
			})
		}
	}
}

// cached reports whether the page to which the tab goes back comes out of the back/forward cache.
func cached(tab *browser.Tab) bool {
	tab.WaitFor("location.search === '' && document.readyState === 'complete'", browser.Limit)
	return browser.Get[bool](tab, "globalThis.cached === 1")
}

// A page that goes into the back/forward cache, or is frozen, while its runtime loads keeps nobody waiting. Its text is
// a draft, with which the next editor goes on.
func TestEarlyPageSleeps(t *testing.T) {
	t.Parallel()
	n, w := troubledNetworkOf(t, whole)
	eachHost(t, func(t *testing.T, host string) {
		for name, sleep := range map[string]func(tab *browser.Tab){
			"cached": func(tab *browser.Tab) { tab.Navigate(w.URL("/blank?elsewhere")) },
			"frozen": (*browser.Tab).Freeze,
		} {
			t.Run(name, func(t *testing.T) {
				root := fmt.Sprintf("early sleep %s %s", host, name)
				later, arrive := n.gated(named(host, root, "Ann"))
				tab := w.typesEarly(t, later)
				tab.MustEval("globalThis.cached = 1; null", nil)
				sleep(tab)
				next := w.earlyTab(t, named(host, root, "Ben"))
				next.MustEval("edits(); null", nil)
				next.WaitFor("!autosave.readOnly && autosave.lease", browser.Limit)
				const found = "text === ' and typed' || (await texts()).join() === ' and typed'"
				if name == "cached" {
					next.WaitFor(found, browser.Limit)
				}
				arrive()
				if name == "frozen" {
					tab.Resume()
					next.WaitFor(found, browser.Limit) // a frozen worker may keep the file of the draft open
				} else if tab.MustEval("history.back(); null", nil); !cached(tab) {
					return // Chromium mostly discards a page whose download is under way
				}
				tab.WaitFor("autosave.readOnly && autosave.state().phase === 'readonly'", browser.Limit)
				next.MustEval("type('!'); await autosave.flushNow(); await hf.close(); null", nil)
				tab.WaitFor("!autosave.readOnly", browser.Limit)
				for _, tab := range []*browser.Tab{tab, next} {
					tab.MustEval("await hf.close(); null", nil)
					assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
					tab.Close()
				}
			})
		}
	})
}

// givesUp asks to edit, and gives up. The call ends at once, and so does a call whose signal has aborted before.
func givesUp(t *testing.T, tab *browser.Tab) {
	t.Helper()
	tab.MustEval(`
		const stop = new AbortController()
		failure(autosave.requestEdit({signal: stop.signal})).then(({code}) => { globalThis.code = code })
		setTimeout(() => stop.abort())
		null`, nil)
	if err := tab.Wait("globalThis.code", browser.Limit/6); err != nil {
		t.Errorf("the call hangs: %v", err)
		return
	}
	assert.Equal(t, "aborted", browser.Get[string](tab, "code"))
	assert.Equal(t, "aborted", browser.Get[event](tab, "await failure(autosave.requestEdit({signal: AbortSignal.abort()}))")["code"])
}

// A page that lost its early lock asks to edit, and gives up while the Wasm is loading. The call ends at once.
func TestEarlyRequestIsAborted(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	eachHost(t, func(t *testing.T, host string) {
		tab := w.typesEarly(t, n.never(named(host, "request is aborted "+host, "Ann")))
		tab.MustEval(asFrozen, nil)
		tab.WaitFor("told.includes('readonly')", browser.Limit)
		givesUp(t, tab)
		tab.MustEval("hf.close().catch(() => {}); null", nil)
		tab.Close()
	})
}
