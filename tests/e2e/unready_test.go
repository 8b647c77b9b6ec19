package e2e

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// typesUnready opens a page that types before it may edit. Its modules have arrived, and the Wasm has not.
func (w world) typesUnready(t *testing.T, holdfast string) *browser.Tab {
	t.Helper()
	tab := w.earlyTab(t, holdfast)
	tab.MustEval("edits("+onlyPreview+"); type('typed'); null", nil)
	tab.WaitFor("['preview', 'autosave'].every(name => performance.getEntriesByName(location.origin + `/holdfast-${name}.js`).length)", browser.Limit)
	tab.WaitFor("autosave.kept && autosave.folder", browser.Limit)
	return tab
}

// A page types while it may not edit and the Wasm is loading, and ends before its AutoSave is ready. The next page finds the text.
func TestTextBeforeReadyOutlivesItsPage(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	gaveUp := []string{"write-failed", "load-failed"} // by the limit of the call or of the download, whichever comes first
	parts := map[string]func(t *testing.T){}
	for name, end := range map[string]func(tab *browser.Tab){
		"navigated": func(tab *browser.Tab) { tab.Navigate(w.URL("/blank?elsewhere")) },
		"disposed": func(tab *browser.Tab) {
			tab.MustEval("const done = failure(autosave.dispose()); text = 'emptied'; result = await done", nil)
			assert.Contains(t, gaveUp, browser.Get[event](tab, "result")["code"])
			tab.MustEval("await hf.close(); null", nil)
		},
		"closed": func(tab *browser.Tab) {
			tab.MustEval("const done = failure(hf.close()); text = 'emptied'; result = await done", nil)
			assert.Contains(t, gaveUp, browser.Get[event](tab, "result")["code"])
		},
	} {
		for _, host := range []string{"worker", "page"} {
			parts[name+"/"+host] = func(t *testing.T) {
				root := fmt.Sprintf("unready %s %s", name, host)
				tab := w.typesUnready(t, n.never(named(host, root, "Ann")))
				end(tab)
				tab.Close()
				w.finds(t, named(host, root, "Ben"), "typed")
			}
		}
	}
	atOnce(t, parts)
}

// A page is put into the back/forward cache before its AutoSave is ready, and returns. It saves its text itself, and leaves no draft of it.
func TestTextBeforeReadyAfterAReturn(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	eachHost(t, func(t *testing.T, host string) {
		root := "unready return " + host
		later, arrive := n.gated(named(host, root, "Ann"))
		tab := w.typesUnready(t, later)
		tab.MustEval(asHidden, nil)
		assert.True(t, browser.Get[bool](tab, inLocalStorage(root, "typed")))
		tab.MustEval(asShown, nil)
		assert.False(t, browser.Get[bool](tab, inLocalStorage(root, "typed")))
		tab.MustEval("type(' on'); null", nil)
		arrive()
		tab.WaitFor("told.includes('saved') && autosave.state().phase === 'idle'", browser.Limit)
		assert.Equal(t, "typed on", browser.Get[string](tab, "await current()"))
		assert.Empty(t, browser.Get[[]string](tab, "await texts()"))
		tab.MustEval("dispatchEvent(new PageTransitionEvent('pagehide')); null", nil)
		assert.False(t, browser.Get[bool](tab, inLocalStorage(root, "typed")), "it is saved")
		quiet(t, tab)
	})
}

// The download of the runtime fails, and the page ends before the next attempt.
func TestTextBetweenTwoAttemptsOutlivesItsPage(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	root := "unready attempts"
	gate := make(chan struct{})
	n.fail("/refused.wasm", func(w http.ResponseWriter, r *http.Request) {
		<-gate
		http.NotFound(w, r)
	})
	tab := w.typesUnready(t, "{..."+named("worker", root, "Ann")+", wasmURL: '/refused.wasm'}")
	tab.MustEval("globalThis.first = failure(autosave.ready); null", nil)
	close(gate)
	tab.WaitFor("(await first).code === 'load-failed'", browser.Limit)
	tab.MustEval("type(' on'); setTimeout(() => location.replace('/blank?left')); null", nil)
	tab.WaitFor("location.search === '?left'", browser.Limit)
	tab.Quiet("404")
	tab.Close()
	w.finds(t, named("worker", root, "Ben"), "typed on")
}

// A page asks to edit before its AutoSave is ready, and gives up. The call ends at once.
func TestRequestBeforeReadyIsAborted(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	tab := w.earlyTab(t, n.never(named("worker", "unready request", "Ann")))
	tab.MustEval("edits("+onlyPreview+"); null", nil)
	givesUp(t, tab)
	quiet(t, tab)
}

// A page that has reported no change waits for the runtime and for the lock. Nobody asks it for a text, which its editor may not have yet.
func TestNoSnapshotBeforeAMark(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	tab := w.earlyTab(t, n.never(named("worker", "unready unmarked", "Ann")))
	tab.MustEval(`
		const {setTimeout: real} = globalThis
		void navigator.locks.request('holdfast:unready unmarked', () => new Promise(() => {}))
		globalThis.looks = 0 // whether the runtime runs by now
		globalThis.setTimeout = (run, ms, ...more) => {
			if (ms === 50) looks++
			return real(run, ms, ...more)
		}
		globalThis.asked = 0
		globalThis.autosave = hf.createAutoSave(async () => {
			asked++
			throw new Error('there is no editor yet')
		})
		autosave.addEventListener('autosave:preview', () => {})
		null`, nil)
	tab.WaitFor("looks > 3", browser.Limit)
	assert.Zero(t, browser.Get[int](tab, "asked"))
	assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
}

// The snapshot of a page fails before its AutoSave is ready. A call that needs it gets the error, and nobody else.
func TestSnapshotThatFailsBeforeReadyIsNoUnhandledError(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	for name, snapshot := range map[string]string{"rejects": "throw new Error('there is no editor yet')", "refused": "return new Map()"} {
		later, arrive := n.gated(named("worker", "unready failing "+name, "Ann"))
		tab := w.earlyTab(t, later)
		tab.MustEval("globalThis.asked = 0; edits("+onlyPreview+", undefined, async () => { asked++; "+snapshot+" }); null", nil)
		tab.WaitFor("autosave.kept && autosave.folder", browser.Limit)
		tab.MustEval("autosave.markDirty(); globalThis.flushing = failure(autosave.flushNow()); null", nil)
		tab.MustEval("autosave.markDirty(); dispatchEvent(new PageTransitionEvent('pagehide')); null", nil)
		arrive()
		assert.Equal(t, "snapshot-failed", browser.Get[event](tab, "await flushing")["code"], name)
		assert.Positive(t, browser.Get[int](tab, "asked"), name)
		quiet(t, tab)
	}
}
