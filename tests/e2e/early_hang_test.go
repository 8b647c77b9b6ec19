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

// The module that starts Go does not arrive, so the page never asks for the Wasm. Calls reject with "load-failed" within
// the limit. The page goes on editing, its text is kept, and it is saved once the module arrives.
func TestEarlyWhileTheModuleOfTheHostHangs(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	for host, module := range map[string]string{"worker": "/holdfast-host.js", "page": "/holdfast-page.js"} {
		t.Run(host, func(t *testing.T) {
			gate := make(chan struct{})
			n.fail(module, func(w http.ResponseWriter, r *http.Request) {
				<-gate
				n.files.ServeHTTP(w, r)
			})
			root := "module hangs " + host
			tab := w.Open(t, w.URL("/blank"))
			begin(tab, "")
			tab.MustEval(shortLimit, nil)
			tab.MustEval("await start("+named(host, root, "Ann")+"); null", nil)
			tab.MustEval(early, nil)
			tab.MustEval("edits(); null", nil)
			tab.WaitFor("told.includes('editable') && !autosave.readOnly", browser.Limit)
			tab.MustEval("type('typed'); null", nil)
			tab.WaitFor("Object.keys(localStorage).some(key => key.startsWith('holdfast:draft:"+root+"/'))", browser.Limit)
			for range 2 {
				assert.Equal(t, "load-failed", browser.Get[event](tab, "await failure(hf.inspect())")["code"])
			}
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
