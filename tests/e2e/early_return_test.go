package e2e

import (
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// gate makes a page wait for the Wasm until `arrive` is called. Nothing is under way meanwhile: with a download, Chromium mostly
// discards a page in the back/forward cache. `shut` makes the next Wasm wait, too.
const gate = `{
	const real = fetch
	let gate
	globalThis.shut = () => { gate = new Promise(done => { globalThis.arrive = done }) }
	globalThis.fetch = async (url, ...more) => {
		if (String(url).endsWith('.wasm')) await gate
		return real(url, ...more)
	}
}
null`

// stored waits until a text of a project would outlive the page: in the file of a draft, or in localStorage.
func stored(tab *browser.Tab, root, text string) {
	tab.WaitFor(fmt.Sprintf("Object.values(localStorage).some(entry => entry.includes('%s')) || %s", text, journalled(root, text)), browser.Limit)
}

// gatedTab opens a page with an editor that waits for the Wasm and has typed.
func (w world) gatedTab(t *testing.T, holdfast string) *browser.Tab {
	t.Helper()
	tab := w.Open(t, w.URL("/blank"))
	begin(tab, "")
	tab.MustEval(gate, nil)
	tab.MustEval("shut(); await start("+holdfast+"); null", nil)
	tab.MustEval(early, nil)
	tab.MustEval("globalThis.cached = 1; edits(); null", nil)
	tab.WaitFor("told.some(one => one.startsWith('editable')) && !autosave.readOnly", browser.Limit)
	tab.MustEval("type(' one'); null", nil)
	return tab
}

// The next runtime of a page does not arrive, after a return from the cache or the death of the worker. Words that are typed then outlive a
// crash.
func TestTypedBeforeTheNextRuntimeRuns(t *testing.T) {
	t.Parallel()
	w := open(t, whole)
	eachHost(t, func(t *testing.T, host string) {
		for name, end := range map[string]func(tab *browser.Tab) bool{
			"cached": func(tab *browser.Tab) bool {
				tab.Navigate(w.URL("/blank?elsewhere"))
				return back(t, tab)
			},
			"replaced": func(tab *browser.Tab) bool {
				tab.WorkerEval("self.close(); 1", nil)
				tab.WaitFor("told.includes('readonly')", browser.Limit)
				return true
			},
		} {
			if name == "replaced" && host == "page" {
				continue // a program in the page is not replaced
			}
			t.Run(name, func(t *testing.T) {
				root := "next " + host + name
				tab := w.gatedTab(t, named(host, root, "Ann"))
				tab.MustEval("arrive(); null", nil)
				tab.WaitFor("told.includes('saved') && autosave.lease", browser.Limit)
				tab.MustEval("shut(); null", nil)
				if !end(tab) {
					return
				}
				for _, word := range []string{" two", " three"} {
					tab.MustEval("type('"+word+"'); null", nil)
					stored(tab, root, word)
				}
				tab.Crash()
				tab.Close()
				w.finds(t, named(host, root, "Ben"), " one two three")
			})
		}
	})
}
