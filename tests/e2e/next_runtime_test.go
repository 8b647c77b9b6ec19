package e2e

import (
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// forgets removes what the pages of a project have in localStorage, as if the browser was killed before it wrote that to the disk.
func (w world) forgets(t *testing.T, root string) {
	t.Helper()
	tab := w.Open(t, w.URL("/blank"))
	tab.MustEval(fmt.Sprintf("for (const key of Object.keys(localStorage)) if (key.startsWith('holdfast:draft:%s/')) localStorage.removeItem(key); null", root), nil)
	tab.Close()
}

// returnsWhenDue makes a page type and come back from the cache. The timer of its journal is due before there is another worker, and the
// runtime does not begin again.
const returnsWhenDue = `{
	const {setTimeout: set, clearTimeout: clear} = globalThis
	let due
	globalThis.setTimeout = (run, ms, ...args) => ms > 150 && ms <= 200 ? (due = run, -1) : set(run, ms, ...args)
	globalThis.clearTimeout = (id) => { id === -1 ? due = undefined : clear(id) }
	type(' two')
	await 0
	globalThis.setTimeout = (run, ms, ...args) => ms === 30_000 ? 0 : set(run, ms, ...args)
	dispatchEvent(new PageTransitionEvent('pagehide', {persisted: true}))
	dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))
	due()
}
null`

// A page types, and at once enters the back/forward cache or loses its worker. The next runtime does not arrive, and the browser is killed
// before it has written localStorage to the disk. These words, and words that are typed meanwhile, are in the draft's file.
func TestLastWordsAreStoredBeforeTheNextRuntimeRuns(t *testing.T) {
	t.Parallel()
	w := open(t, whole)
	eachHost(t, func(t *testing.T, host string) {
		typesAndEnds := map[string]func(tab *browser.Tab) bool{
			"as if cached": func(tab *browser.Tab) bool {
				tab.MustEval("type(' two'); "+asHidden, nil)
				tab.MustEval(asShown, nil)
				return true
			},
			"cached when the journal is due": func(tab *browser.Tab) bool {
				tab.MustEval(returnsWhenDue, nil)
				return true
			},
		}
		for name, end := range w.runtimeLosses(t, host) {
			typesAndEnds[name] = func(tab *browser.Tab) bool {
				tab.MustEval("type(' two'); null", nil)
				return end(tab)
			}
		}
		for name, end := range typesAndEnds {
			t.Run(name, func(t *testing.T) {
				root := "stored " + host + name
				tab := w.gatedTab(t, named(host, root, "Ann"))
				shutsAgain(tab)
				if !end(tab) {
					return
				}
				tab.WaitFor(journalled(root, " one two"), browser.Limit)
				tab.MustEval("type(' three'); null", nil)
				tab.WaitFor(journalled(root, " one two three"), browser.Limit)
				tab.Crash()
				tab.Close()
				w.forgets(t, root)
				w.finds(t, named(host, root, "Ben"), " one two three")
			})
		}
	})
}
