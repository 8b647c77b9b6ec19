package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// gate makes a page wait for the Wasm until `arrive` is called. Nothing is under way meanwhile: with a download, Chromium mostly
// discards a page in the back/forward cache. `shut` makes the next Wasm wait, too. `settled` counts the requests for locks that are over.
const gate = `{
	const real = fetch, request = navigator.locks.request.bind(navigator.locks)
	globalThis.settled = 0
	navigator.locks.request = (...asked) => {
		const result = request(...asked), over = () => { settled++ }
		result.then(over, over)
		return result
	}
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

// shutsAgain lets the Wasm of a gated tab arrive, waits until Go has saved the text, and holds up the next download.
func shutsAgain(tab *browser.Tab) {
	tab.MustEval("arrive(); null", nil)
	tab.WaitFor("told.includes('saved') && autosave.lease", browser.Limit)
	tab.MustEval("shut(); null", nil)
}

// rest stops a page, calls a function, and lets the page go on. It reports whether it is the same page.
type rest func(t *testing.T, w world, tab *browser.Tab, meanwhile func()) bool

var rests = []struct {
	name string
	rest rest
}{
	{"cached", func(t *testing.T, w world, tab *browser.Tab, meanwhile func()) bool {
		tab.Navigate(w.URL("/blank?elsewhere"))
		meanwhile()
		return back(t, tab)
	}},
	{"as if cached", func(_ *testing.T, _ world, tab *browser.Tab, meanwhile func()) bool { // Chromium discards some pages
		tab.MustEval("dispatchEvent(new PageTransitionEvent('pagehide', {persisted: true})); null", nil)
		meanwhile()
		tab.MustEval("dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true})); null", nil)
		return true
	}},
	{"frozen", func(_ *testing.T, _ world, tab *browser.Tab, meanwhile func()) bool {
		tab.Freeze()
		meanwhile()
		tab.Resume()
		tab.Show()
		return true
	}},
}

// eachRest runs a test with a page that stops while its Wasm is loading, and goes on before it has arrived.
func eachRest(t *testing.T, test func(t *testing.T, w world, host, root string, rest rest)) {
	t.Helper()
	w := open(t, whole)
	for i, r := range rests {
		for _, host := range turns(i, "worker", "page") {
			t.Run(r.name+"/"+host, func(t *testing.T) { test(t, w, host, host+" "+r.name, r.rest) })
		}
	}
}

// asksAgain reports whether a page that has rested is the same. It has asked for its lock again, and does not edit.
func (r rest) asksAgain(t *testing.T, w world, tab *browser.Tab, meanwhile func()) bool {
	t.Helper()
	before := browser.Get[int](tab, "settled") // one request is the lock that it returns
	if !r(t, w, tab, meanwhile) {
		tab.Close()
		return false
	}
	tab.WaitFor(fmt.Sprintf("settled >= %d", before+2), browser.Limit)
	assert.True(t, browser.Get[bool](tab, "autosave.readOnly"))
	return true
}

// A page that returns before its Wasm arrives edits again, under the lock. Its text outlives a crash then, and again.
func TestEarlyReturnEditsAgain(t *testing.T) {
	t.Parallel()
	eachRest(t, func(t *testing.T, w world, host, root string, rest rest) {
		w.saves(t, named(host, root, "Ann"), "{}", "saved")
		tab := w.gatedTab(t, named(host, root, "Ann"))
		for _, word := range []string{" two", " three"} {
			if !rest(t, w, tab, func() {}) {
				return
			}
			tab.WaitFor("!autosave.readOnly", browser.Limit)
			assert.True(t, held(tab, "holdfast:"+root))
			tab.MustEval("type('"+word+"'); null", nil)
			stored(tab, root, "saved one two")
		}
		stored(tab, root, "saved one two three")
		assert.Equal(t, []string{"preview free: saved", "editable: saved", "readonly", "editable", "readonly", "editable"}, browser.Get[[]string](tab, "told"))
		assert.Equal(t, "saved one two three", browser.Get[string](tab, "text"))
		assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
		tab.Crash()
		tab.Close()
		w.finds(t, named(host, root, "Ben"), "saved one two three")
	})
}

// The Wasm arrives after the return: Go takes over what the page holds, and saves it. The text of the moment at which the page was hidden
// may be saved before. Words that are typed later outlive a crash.
func TestEarlyReturnThenTheRuntimeArrives(t *testing.T) {
	t.Parallel()
	eachRest(t, func(t *testing.T, w world, host, root string, rest rest) {
		tab := w.gatedTab(t, named(host, root, "Ann"))
		if !rest(t, w, tab, func() {}) {
			return
		}
		tab.WaitFor("!autosave.readOnly", browser.Limit)
		viewer := w.earlyTab(t, named(host, root, "Ben"))
		viewer.MustEval(fmt.Sprintf(grabs, "holdfast:"+root), nil)
		tab.MustEval("type(' two'); arrive(); null", nil)
		tab.WaitFor("told.includes('saved') && autosave.state().phase === 'idle' && autosave.lease", browser.Limit)
		assert.Equal(t, []string{"editable", "readonly", "editable", "saved"}, browser.Get[[]string](tab, "told.filter((one, at) => one !== told[at - 1])"))
		assert.Equal(t, 0, browser.Get[int](viewer, "grabbing = false, grabbed"), "the lock was free for a moment")
		assert.True(t, browser.Get[bool](tab, "(all => all.every((one, at) => at === 0 || one <= all[at - 1]))((await autosave.history()).map(({bytes}) => bytes))"), "no text is saved after a later one")
		assert.Equal(t, " one two", browser.Get[string](tab, "await current()"))
		assert.Empty(t, browser.Get[[]string](tab, "[...uncaught, ...await texts()]"))
		tab.MustEval("type(' three'); null", nil)
		stored(tab, root, " three")
		viewer.MustEval("edits(); null", nil)
		tab.Crash()
		tab.Close()
		viewer.WaitFor("!autosave.readOnly && autosave.lease && text === ' one two three'", browser.Limit)
		assert.Empty(t, browser.Get[[]string](viewer, "await texts()"))
		quiet(t, viewer)
	})
}

// Another page edits at the return. The page stays read-only, and its words become a draft, after a crash as well.
func TestEarlyReturnBesideAnEditor(t *testing.T) {
	t.Parallel()
	eachRest(t, func(t *testing.T, w world, host, root string, rest rest) {
		for _, end := range []string{"crash", "close", "arrive"} {
			root := root + " " + end
			tab := w.gatedTab(t, named(host, root, "Ann"))
			stored(tab, root, " one")
			var other *browser.Tab
			if !rest.asksAgain(t, w, tab, func() {
				other = w.earlyTab(t, named(host, root, "Ben"))
				other.MustEval("edits(); null", nil)
				other.WaitFor("!autosave.readOnly && autosave.lease", browser.Limit)
				other.MustEval("type(' other'); await autosave.flushNow(); null", nil)
			}) {
				continue
			}
			saved := browser.Get[string](other, "text")
			tab.MustEval("type(' late'); null", nil)
			stored(tab, root, " one late")
			switch end {
			case "crash":
				tab.Crash()
				tab.Close()
			case "close":
				tab.Close()
			default:
				tab.MustEval("arrive(); null", nil)
				tab.WaitFor("autosave.state().holder?.ownerName === 'Ben'", browser.Limit)
				assert.Equal(t, []string{"editable", "readonly"}, browser.Get[[]string](tab, "told.filter(one => one !== 'draft')"))
			}
			assert.Equal(t, saved, browser.Get[string](other, "await current()"))
			quiet(t, other)
			if end == "arrive" {
				tab.WaitFor("!autosave.readOnly", browser.Limit)
			} else {
				tab = w.earlyTab(t, named(host, root, "Eve"))
				tab.MustEval("edits(); null", nil)
				tab.WaitFor("!autosave.readOnly && autosave.lease", browser.Limit)
			}
			tab.WaitFor("text === '"+saved+"'", browser.Limit)
			assert.Equal(t, []string{" one late"}, browser.Get[[]string](tab, "(await texts()).filter(one => one.includes('late'))"))
			quiet(t, tab)
		}
	})
}

// editsAndLeaves edits and saves a text in a page of its own, which ends. It returns the text.
func (w world) editsAndLeaves(t *testing.T, holdfast string) string {
	t.Helper()
	tab := w.earlyTab(t, holdfast)
	tab.MustEval("edits(); null", nil)
	tab.WaitFor("!autosave.readOnly && autosave.lease", browser.Limit)
	tab.MustEval("type(' other'); await autosave.flushNow(); null", nil)
	saved := browser.Get[string](tab, "text")
	quiet(t, tab)
	return saved
}

// Another page has edited, saved and left before the return. The page does not edit on the older text: it gets the saved one from Go,
// and its words are a draft.
func TestEarlyReturnAfterAnEditor(t *testing.T) {
	t.Parallel()
	eachRest(t, func(t *testing.T, w world, host, root string, rest rest) {
		for _, end := range []string{"crash", "arrive"} {
			root := root + " " + end
			tab := w.gatedTab(t, named(host, root, "Ann"))
			stored(tab, root, " one")
			saved := ""
			if !rest.asksAgain(t, w, tab, func() { saved = w.editsAndLeaves(t, named(host, root, "Ben")) }) {
				continue
			}
			eventually(t, func() bool { return !held(tab, "holdfast:"+root) }, "the lock is given back")
			tab.MustEval("type(' late'); null", nil)
			stored(tab, root, " one late")
			if end == "crash" {
				tab.Crash()
				tab.Close()
				tab = w.earlyTab(t, named(host, root, "Eve"))
				tab.MustEval("edits(); null", nil)
			} else {
				tab.MustEval("arrive(); null", nil)
			}
			tab.WaitFor("!autosave.readOnly && autosave.lease && text === '"+saved+"'", browser.Limit)
			if end == "arrive" {
				tab.MustEval("await autosave.flushNow(); null", nil) // it has nothing to save
				assert.Equal(t, []string{"editable", "readonly", "editable: " + saved}, browser.Get[[]string](tab, "told.filter(one => one !== 'draft')"))
			}
			assert.Equal(t, []string{" one late"}, browser.Get[[]string](tab, "await texts()"))
			assert.Equal(t, saved, browser.Get[string](tab, "await current()"))
			quiet(t, tab)
		}
	})
}

// A page ends as soon as it has returned. localStorage gets the difference to a text that can still be read: the next editor has adopted
// and removed the draft.
func TestEarlyReturnEndsAtOnce(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		for name, as := range map[string]struct{ stop, goOn string }{
			"cached": {"dispatchEvent(new PageTransitionEvent('pagehide', {persisted: true}))", "dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))"},
			// No timer of a frozen page fires. The one that makes a draft of the text would close its file, too.
			"frozen": {"const timeout = setTimeout; globalThis.setTimeout = (run, ms, ...args) => ms === 500 ? 0 : timeout(run, ms, ...args); document.dispatchEvent(new Event('freeze'))", "document.dispatchEvent(new Event('resume'))"},
		} {
			root := "at once " + name + host
			tab := w.gatedTab(t, named(host, root, "Ann"))
			long := strings.Repeat(" long", 5000)
			tab.MustEval("type('"+long+"'); null", nil)
			stored(tab, root, " one"+long)
			tab.MustEval(as.stop+"; null", nil)
			saved := w.editsAndLeaves(t, named(host, root, "Ben"))
			assert.Equal(t, " one"+long+" other", saved)
			tab.MustEval(as.goOn+"; type(' late'); setTimeout(() => location.replace('/blank?left')); null", nil)
			tab.WaitFor("location.search === '?left'", browser.Limit)
			next := w.earlyTab(t, named(host, root, "Eve"))
			next.MustEval("edits(); null", nil)
			next.WaitFor("!autosave.readOnly && autosave.lease && text === '"+saved+"'", browser.Limit)
			assert.Equal(t, []string{" one" + long + " late"}, browser.Get[[]string](next, "await texts()"))
			quiet(t, next)
		}
	})
}

// runtimeLosses are the ways in which a page can lose its runtime and go on. They return whether the page goes on: Chromium may have
// discarded it.
func (w world) runtimeLosses(t *testing.T, host string) map[string]func(tab *browser.Tab) bool {
	ways := map[string]func(tab *browser.Tab) bool{
		"cached": func(tab *browser.Tab) bool {
			tab.Navigate(w.URL("/blank?elsewhere"))
			return back(t, tab)
		},
	}
	if host == "worker" { // a program in the page is not replaced
		ways["replaced"] = func(tab *browser.Tab) bool {
			tab.EndWorker("self.close()")
			tab.WaitFor("told.includes('readonly')", browser.Limit)
			return true
		}
	}
	return ways
}

// The next runtime of a page does not arrive, after a return from the cache or the death of the worker. Words that are typed then outlive a
// crash.
func TestTypedBeforeTheNextRuntimeRuns(t *testing.T) {
	t.Parallel()
	w := open(t, whole)
	eachHost(t, func(t *testing.T, host string) {
		for name, end := range w.runtimeLosses(t, host) {
			t.Run(name, func(t *testing.T) {
				root := "next " + host + name
				tab := w.gatedTab(t, named(host, root, "Ann"))
				shutsAgain(tab)
				if !end(tab) {
					return
				}
				for _, word := range []string{" two", " three"} {
					tab.MustEval("type('"+word+"'); null", nil)
					stored(tab, root, word)
				}
				tab.MustEval("const set = Storage.prototype.setItem; globalThis.writes = 0; Storage.prototype.setItem = function (...asked) { writes++; set.apply(this, asked) }; null", nil)
				tab.MustEval("await new Promise(done => setTimeout(done, 600)); null", nil)
				assert.Zero(t, browser.Get[int](tab, "writes"), "nothing was typed")
				tab.Crash()
				tab.Close()
				w.finds(t, named(host, root, "Ben"), " one two three")
			})
		}
	})
}

// A page returns from the cache and ends its AutoSave, and the next runtime takes longer than the end may take. The runtime begins no AutoSave
// then: nobody would end it, or give its lock back.
func TestEndsBeforeTheNextRuntimeRuns(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		root := "ends before the next runtime " + host
		tab := w.gatedTab(t, named(host, root, "Ann"))
		shutsAgain(tab)
		tab.MustEval(asHidden, nil)
		tab.MustEval(asShown, nil)
		tab.MustEval(`
			const real = setTimeout
			globalThis.setTimeout = (run, ms, ...args) => real(run, ms > 10_000 && ms < 20_000 ? 100 : ms, ...args) // the limit of the end
			result = await failure(autosave.dispose())
			globalThis.setTimeout = real
			arrive()
			await hf.ready
			await hf.inspect()
			await new Promise(done => setTimeout(done, 500))
			null`, nil)
		assert.Equal(t, "write-failed", browser.Get[event](tab, "result")["code"])
		assert.False(t, held(tab, "holdfast:"+root))
		w.finds(t, named(host, root, "Ben"), " one")
		quiet(t, tab)
	})
}
