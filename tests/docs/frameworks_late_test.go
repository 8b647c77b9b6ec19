package docs

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// The user types into the HTML of a server before the script arrives. The text becomes the content if there is none,
// and otherwise a draft.
func testHydrated(t *testing.T, chromium *browser.Browser, server *browser.Server) {
	tab := chromium.Open(t, strings.Replace(server.URL("/app"), "localhost", "hydrated.localhost", 1))
	shows := func(typed, text string) {
		t.Helper()
		tab.MustEval("globalThis.typed = '"+typed+"'; show('Hydrated')", nil)
		tab.WaitFor(field+".value === '"+text+"' && !"+field+".readOnly", browser.Limit)
		tab.MustEval("show()", nil)
	}
	tab.MustEval("globalThis.typed = 'early'; show('Hydrated')", nil)
	assert.Equal(t, "early", browser.Get[string](tab, field+".value"))
	shows("early", "early")
	shows("", "early")
	assert.Empty(t, browser.Get[[]string](tab, "await drafts('hydrated')"))
	shows("other words", "early")
	assert.Equal(t, []string{"other words"}, browser.Get[[]string](tab, "await drafts('hydrated')"))
	quiet(tab)
	tab.Close()
}

// The user types before the component has a Holdfast. The text becomes the content if there is none, and otherwise a draft.
func testWaiting(t *testing.T, chromium *browser.Browser, server *browser.Server) {
	for _, word := range []string{"first", "second"} {
		tab := chromium.Open(t, strings.Replace(server.URL("/app"), "localhost", "waiting.localhost", 1))
		tab.MustEval("show('Waiting')", nil)
		tab.WaitFor("!!"+field, browser.Limit)
		tab.MustEval(field+".value = '"+word+"'; "+field+".dispatchEvent(new InputEvent('input', {bubbles: true})); give(); null", nil)
		edits(tab)
		tab.WaitFor("autosave.state().phase === 'idle' && "+field+".value === 'first'", browser.Limit)
		texts := browser.Get[[]string](tab, "await Promise.all((await autosave.drafts()).map(async ({id}) => new TextDecoder().decode(await autosave.read(id))))")
		if word == "first" {
			assert.Empty(t, texts)
			assert.Equal(t, "first", browser.Get[string](tab, "new TextDecoder().decode(await autosave.read('current').catch(() => new Uint8Array()))"))
		} else {
			assert.Equal(t, []string{"second"}, texts)
		}
		tab.MustEval("await holdfast.close(); null", nil)
		tab.MustEval("show()", nil)
		quiet(tab)
		tab.Close()
	}
}

// A component gets its Holdfast after it is shown. It opens none of its own meanwhile, and keeps what the user types until then.
func testLaterHoldfast(t *testing.T, chromium *browser.Browser, server *browser.Server, app string) {
	tab := chromium.Open(t, strings.Replace(server.URL("/app"), "localhost", "later-"+strings.Split(app, "-")[0]+".localhost", 1))
	tab.MustEval("show('Later')", nil)
	tab.WaitFor("!!"+field, browser.Limit)
	tab.MustEval("await new Promise(done => setTimeout(done, 300))", nil)
	assert.Zero(t, tab.Workers(), "it has opened a Holdfast of its own")
	assert.True(t, browser.Get[bool](tab, field+".readOnly"))
	typed := "Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, 'value').set.call(" + field + ", 'early'); " + field + ".dispatchEvent(new InputEvent('input', {bubbles: true}))"
	tab.MustEval(typed+"; give(); null", nil)
	tab.WaitFor("!"+field+".readOnly && "+field+".value === 'early'", browser.Limit)
	edits(tab)
	tab.Type(" and late")
	tab.MustEval("await holdfast.close(); show()", nil)
	assert.Equal(t, "early and late", browser.Get[string](tab, "await (async () => { const {createHoldfast} = await import('/holdfast.js'); const hf = createHoldfast({root: 'later'}); const saver = await hf.initAutoSave(() => '', {path: ['later']}); const text = new TextDecoder().decode(await saver.read('current')); await hf.close(); return text })()"))
	quiet(tab)
	tab.Close()
}

// reader opens two tabs with the part Slow. The first one edits and has loaded "one". Nobody has typed there.
func reader(t *testing.T, chromium *browser.Browser, url string) (tab, other *browser.Tab) {
	tab, other = chromium.Open(t, url), chromium.Open(t, url)
	other.MustEval("show('Slow')", nil)
	edits(other)
	other.Type("one")
	other.MustEval("await autosave.flushNow(); show()", nil)
	tab.MustEval("show('Slow')", nil)
	tab.WaitFor("!!"+field+" && "+field+".value === 'one' && !"+field+".readOnly", browser.Limit)
	other.MustEval("show('Slow')", nil)
	other.WaitFor("!!"+field+" && "+field+".value === 'one'", browser.Limit)
	return tab, other
}

// A page follows the saved content, and becomes the editor before its component has loaded that content. It is
// read-only until then: the content would replace what the user types.
func testSlowLoad(t *testing.T, chromium *browser.Browser, server *browser.Server) {
	tab, other := reader(t, chromium, strings.Replace(server.URL("/app"), "localhost", "slow.localhost", 1))
	tab.MustEval(`
		globalThis.loaded = new Promise(done => { globalThis.load = done })
		autosave.addEventListener('autosave:readonly', () => { globalThis.lost = true })
		autosave.addEventListener('autosave:editable', ({detail}) => { if (globalThis.lost) globalThis.regained = [detail.content === undefined, autosave.readOnly] })
		const all = Object.getPrototypeOf(autosave), {read} = all
		all.read = async function (id) {
			setTimeout(() => { globalThis.reading = true })
			return read.call(this, id)
		}`, nil)
	other.MustEval("await autosave.requestEdit()", nil)
	tab.WaitFor("globalThis.lost && globalThis.reading", browser.Limit)
	other.MustEval("show()", nil)
	tab.WaitFor("!!globalThis.regained", browser.Limit)
	assert.Equal(t, []bool{true, true}, browser.Get[[]bool](tab, "regained"))
	tab.MustEval("load(); null", nil)
	edits(tab)
	tab.Type("!")
	assert.Equal(t, "one!", browser.Get[string](tab, field+".value"))
	unmountAll(tab, other)
}

// A page that lost the lock twice reads the content twice. The first reading ends last, and is not shown.
func testSlowRead(t *testing.T, chromium *browser.Browser, server *browser.Server) {
	tab, other := reader(t, chromium, strings.Replace(server.URL("/app"), "localhost", "read.localhost", 1))
	tab.MustEval(`
		globalThis.answers = []
		const all = Object.getPrototypeOf(autosave), {read} = all
		all.read = async function (id) {
			const content = await read.call(this, id)
			await new Promise(done => answers.push(done))
			return content
		}`, nil)
	takes := func(n string) {
		t.Helper()
		other.MustEval("await autosave.requestEdit()", nil)
		tab.WaitFor("answers.length === "+n, browser.Limit)
	}
	takes("1")
	edits(other)
	other.Type(", two")
	other.MustEval("await autosave.flushNow(); show()", nil)
	tab.WaitFor(field+".value === 'one, two' && !"+field+".readOnly", browser.Limit)
	other.MustEval("show('Slow')", nil)
	other.WaitFor("!!"+field+" && "+field+".value === 'one, two'", browser.Limit)
	takes("2")
	tab.MustEval("answers[1](); await null; answers[0](); await new Promise(done => setTimeout(done))", nil)
	assert.Equal(t, "one, two", browser.Get[string](tab, field+".value"))
	unmountAll(tab, other)
}

// A component cannot load the content, neither as a preview nor as it becomes the editor. It stays read-only, because the user would type
// over that content, and the hook says why.
func testBrokenLoad(t *testing.T, chromium *browser.Browser, server *browser.Server) {
	tab := chromium.Open(t, strings.Replace(server.URL("/app"), "localhost", "broken.localhost", 1))
	tab.MustEval("show('Broken')", nil)
	edits(tab)
	tab.Type("one")
	tab.MustEval("await autosave.flushNow(); show(); globalThis.broken = true; show('Broken')", nil)
	tab.WaitFor("globalThis.failure?.code === 'read-failed' && globalThis.autosave && !autosave.readOnly && autosave.state().phase === 'idle'", browser.Limit)
	assert.Equal(t, "planted", browser.Get[string](tab, "failure.cause.message"))
	assert.True(t, browser.Get[bool](tab, field+".readOnly"))
	tab.MustEval("show(); globalThis.broken = false; show('Broken')", nil)
	tab.WaitFor("!!"+field+" && "+field+".value === 'one' && !"+field+".readOnly && !globalThis.failure", browser.Limit)
	tab.MustEval("show()", nil)
	tab.Quiet("planted")
	tab.Close()
}

// A component is still loading an earlier content when it gets a later one. It ends with the later one.
func testSlowEarlierLoad(t *testing.T, chromium *browser.Browser, server *browser.Server) {
	tab, other := reader(t, chromium, strings.Replace(server.URL("/app"), "localhost", "earlier.localhost", 1))
	tab.MustEval(`
		globalThis.began = 0
		globalThis.loaded = {then: done => { began++; globalThis.load = done }}
		autosave.addEventListener('autosave:editable', ({detail}) => { if (began) globalThis.regained = !!detail.content }); null`, nil)
	other.MustEval("await autosave.requestEdit()", nil)
	tab.WaitFor("began === 1", browser.Limit)
	tab.MustEval("globalThis.loaded = undefined", nil)
	edits(other)
	other.Type(", two")
	other.MustEval("await autosave.flushNow(); show()", nil)
	tab.WaitFor("globalThis.regained === true", browser.Limit)
	tab.MustEval("load(); null", nil)
	edits(tab)
	tab.Type("!")
	assert.Equal(t, "one, two!", browser.Get[string](tab, field+".value"))
	unmountAll(tab, other)
}

// The user comes back to a page, and another page has saved meanwhile. The browser does not fill in the text that the
// page had before: nobody has typed it, so it becomes no draft.
func testRestored(t *testing.T, chromium *browser.Browser, server *browser.Server) {
	url := strings.Replace(server.URL("/rendered"), "localhost", "restored.localhost", 1)
	tab, other := chromium.Open(t, url), chromium.Open(t, url)
	for _, one := range []*browser.Tab{tab, other} {
		one.MustEval("show('Rendered')", nil)
		edits(one)
		one.Type("old")
		one.MustEval("show()", nil)
	}
	tab.MustEval("addEventListener('unload', () => undefined); null", nil) // so that the browser keeps no page
	tab.Navigate(strings.Replace(server.URL("/app"), "localhost", "restored.localhost", 1))
	tab.MustEval("globalThis.before = true; setTimeout(() => history.back()); null", nil)
	tab.WaitFor("!globalThis.before && !!globalThis.show", browser.Limit)
	tab.MustEval("show('Rendered')", nil)
	tab.WaitFor(field+".value === 'oldold' && !"+field+".readOnly", browser.Limit)
	assert.Empty(t, browser.Get[[]string](tab, "await drafts('rendered')"))
	unmountAll(tab, other)
}

// unmountAll removes the component from each page, which must have been quiet, and closes the page.
func unmountAll(tabs ...*browser.Tab) {
	for _, tab := range tabs {
		tab.MustEval("show()", nil)
		quiet(tab)
		tab.Close()
	}
}

// A component that gets another Holdfast shows its AutoSave, also if the AutoSave of the former Holdfast ends only then.
func testSwapped(t *testing.T, chromium *browser.Browser, server *browser.Server) {
	tab := chromium.Open(t, strings.Replace(server.URL("/app"), "localhost", "swapped.localhost", 1))
	tab.MustEval(`
		const made = () => {
			const listeners = new Set(), autosave = Object.assign(new EventTarget(), {
				readOnly: true, ready: Promise.resolve(), subscribe: (one) => listeners.add(one), dispose: async () => {}, now: {phase: 'idle'}, state: () => autosave.now,
				ends: () => { autosave.now = {phase: 'readonly'}; listeners.forEach((one) => one()) },
			})
			return {autosave, createAutoSave: () => autosave}
		}
		Object.assign(globalThis, {former: made(), next: made()})
		show('Swapping')
		swap(next)
		await new Promise(done => setTimeout(done))
		former.autosave.ends()
		await new Promise(done => setTimeout(done))
		null`, nil)
	assert.True(t, browser.Get[bool](tab, "autosave === next.autosave"))
	unmountAll(tab)
}
