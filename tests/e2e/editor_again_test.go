package e2e

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// The user gives the tab another name while its text cannot be saved. The text is a draft, and the tab opens again.
func TestEditorOpensAgainWithUnsavedText(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	tab := editorTab(t, w, "Ann")
	stealer := w.tab(t, named("worker", "project", "Stealer"))
	tab.MustEval("write('typed')", nil)
	stealer.MustEval("globalThis.stolen = await hf.acquireProjectLock({steal: true}); null", nil)
	tab.WaitFor("kind() === 'held'", browser.Limit)
	tab.MustEval("$('name').value = 'Anna'; $('name').dispatchEvent(new Event('change', {bubbles: true}))", nil)
	tab.WaitFor("document.title.endsWith('· Anna') && ['held', 'failed'].includes(kind())", browser.Limit)
	assert.Equal(t, "held", browser.Get[string](tab, "kind()"))
	stealer.MustEval("await stolen.release()", nil)
	tab.WaitFor("kind() === 'holding' && $('text').value === 'typed'", browser.Limit)
	tab.Quiet()
}

// The user comes back to the page, and the browser has checked the box again. The page refuses to hand over.
func TestEditorRefusesAfterReturn(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	ann, ben := editorTab(t, w, "Ann"), editorTab(t, w, "Ben")
	ann.MustEval("$('keep').click(); addEventListener('unload', () => undefined)", nil) // so that the browser keeps no page
	ann.Navigate(w.URL("/blank"))
	ben.WaitFor("kind() === 'holding'", browser.Limit)
	ann.MustEval("globalThis.before = true; setTimeout(() => history.back()); null", nil)
	ann.WaitFor("!globalThis.before && document.body?.dataset.kind === 'held' && document.querySelector('#keep').checked", browser.Limit)
	ann.MustEval("document.querySelector('#ask').click()", nil)
	ann.WaitFor("document.body.dataset.kind === 'holding'", browser.Limit)
	ben.WaitFor("kind() === 'held'", browser.Limit)
	press(ben, "ask")
	ben.WaitFor("kind() === 'holding' || /refused: its user wants to keep writing/.test($('outcome').textContent)", browser.Limit)
	assert.Equal(t, "held", browser.Get[string](ben, "kind()"))

	// When the other tab writes after all, its page shows no refusal.
	ann.Close()
	ben.WaitFor("kind() === 'holding'", browser.Limit)
	assert.True(t, browser.Get[bool](ben, "$('outcome').hidden"), "the refusal was before that")
	ben.Quiet()
}

// A page that lost the lock twice reads the content twice. The first reading ends last, and is not shown: the page
// would edit it.
func TestPagesOfDemoShowLastReading(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	for path, ask := range map[string]string{
		"/":           "$('ask')",
		"/notes.html": "document.querySelector('holdfast-status').shadowRoot.querySelector('[part~=ask]')",
	} {
		t.Run(path, func(t *testing.T) {
			page := func() *browser.Tab {
				tab := w.Open(t, w.URL(path))
				tab.MustEval("const $ = id => document.getElementById(id), field = document.querySelector('textarea'), write = more => { field.value += more; field.dispatchEvent(new Event('input', {bubbles: true})) }", nil)
				return tab
			}
			edits := func(tab *browser.Tab, text string) {
				t.Helper()
				tab.WaitFor(fmt.Sprintf("!field.readOnly && field.value === %q", text), browser.Limit)
			}
			tab := page()
			edits(tab, "")
			tab.MustEval("write('one')", nil)
			other := page()
			tab.MustEval(slowReading, nil)
			takes := func() {
				t.Helper()
				before := browser.Get[int](tab, "answers.length")
				other.WaitFor(ask+".checkVisibility() && ("+ask+".click(), true)", browser.Limit)
				other.WaitFor("!field.readOnly", browser.Limit)
				tab.WaitFor(fmt.Sprintf("field.readOnly && answers.length > %d", before), browser.Limit)
			}
			takes()
			edits(other, "one")
			other.MustEval("write(', two')", nil)
			other.Close()
			edits(tab, "one, two")
			other = page()
			takes()
			tab.MustEval("const [first, ...later] = answers; later.forEach(answer => answer()); await null; first(); await new Promise(done => setTimeout(done))", nil)
			assert.Equal(t, "one, two", browser.Get[string](tab, "field.value"))
			other.Close()
			tab.Close()
		})
	}
}

// The user unchecks the box "Between machines", which leads to another page, and comes back. The box is checked, as the page is shared.
func TestEditorSharedBoxAfterReturn(t *testing.T) {
	t.Parallel()
	server := serve(t)
	tab := server.machine(t, browser.Start(t, whole), "Ann")
	tab.MustEval("globalThis.before = true; setTimeout(() => $('share-box').click()); null", nil)
	tab.WaitFor("location.search === '' && document.body?.dataset.kind === 'holding'", browser.Limit)
	tab.MustEval("setTimeout(() => history.back()); null", nil)
	tab.WaitFor("location.search === '?machines' && document.body?.dataset.kind === 'holding'", browser.Limit)
	assert.True(t, browser.Get[bool](tab, "document.querySelector('#share-box').checked"))
	assert.True(t, browser.Get[bool](tab, "globalThis.before === true"), "the browser has kept the page")
}

// A module does not arrive. The page says that it does not run, and the button tries again.
func TestEditorWithoutModule(t *testing.T) {
	t.Parallel()
	mux := pages(t, siteDir)
	var arrives atomic.Bool
	w := world{browser.Start(t, quick), browser.Serve(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/holdfast.js" && !arrives.Load() {
			http.NotFound(rw, r)
			return
		}
		mux.ServeHTTP(rw, r)
	}))}
	tab := w.Open(t, w.URL("/"))
	tab.WaitFor("!document.getElementById('failure').hidden", browser.Limit)
	arrives.Store(true)
	tab.MustEval("document.getElementById('reopen').click(); null", nil)
	tab.WaitFor("document.body.dataset.kind === 'holding'", browser.Limit)
}
