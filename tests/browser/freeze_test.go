package browser_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// Frozen and suspended tabs behave alike to others: no timer of the page or worker runs, a lock is granted to them
// although their callbacks do not run, and their locks can be stolen at once.
func TestFrozenTab(t *testing.T) {
	for _, way := range []struct {
		name      string
		stop, run func(*browser.Tab)
	}{
		{"freeze", (*browser.Tab).Freeze, (*browser.Tab).Resume},
		{"suspend", (*browser.Tab).Suspend, (*browser.Tab).Continue},
	} {
		t.Run(way.name, func(t *testing.T) {
			l := openLab(t, browser.Options{})
			observer, tab := l.tab(t, "observer"), l.tab(t, "tab")
			observer.MustEval("await take('for page'); take('for worker')", nil)
			tab.MustEval("await take('of page'); await ask('take', 'of worker')", nil)
			tab.MustEval("tick(20); await ask('tick', 20); take('for page'); worker.postMessage(['take', 'for worker']); 1", nil)
			queued(t, observer, 2)
			observer.WaitFor("count('tab', 'tick', 0) && count('tab-worker', 'tick', 0)", browser.Limit)

			way.stop(tab)
			// A busy browser stops the tab some time later, and its worker after it.
			if way.name == "freeze" {
				observer.WaitFor("count('tab', 'freeze', 0)", browser.Limit)
			}
			observer.WaitFor("!count('tab', 'tick', now() - 500) && !count('tab-worker', 'tick', now() - 500)", browser.Limit)
			stopped := browser.Get[frozen](observer, `give('for page'); give('for worker')
				const since = now(); await pause(600)
				const {held, pending} = await navigator.locks.query()
				;({page: count('tab', 'tick', since), worker: count('tab-worker', 'tick', since),
				callbacks: count('tab', 'granted for page', 0) + count('tab-worker', 'granted for worker', 0),
				held: held.filter(l => l.name.startsWith('for ')).length, pending: pending.length})`)
			assert.Equal(t, frozen{Held: 2}, stopped, "a frozen tab runs no timer and no callback, and keeps both locks")

			took := browser.Get[float64](observer, `const before = now()
				await take('of page', {steal: true}); await take('of worker', {steal: true}); now() - before`)
			t.Logf("both locks stolen in %.1f ms", took)
			assert.Less(t, took, browser.Prompt)
			assert.Equal(t, 0, browser.Get[int](observer, "own.filter(n => n.what.includes('Error')).length"))

			way.run(tab)
			// The errors arrive, but a busy browser runs timers before them.
			tab.WaitFor("at(own, who, 'AbortError of page')", browser.Limit)
			observer.WaitFor("at(seen, 'tab-worker', 'AbortError of worker')", browser.Limit)
			first := browser.Get[[]string](tab, fmt.Sprintf(
				"own.filter(n => n.at > %f).slice(0, 4).map(n => n.what)", browser.Get[float64](observer, "since")))
			t.Logf("the page sees first: %q", first)
			t.Logf("the worker sees first: %q", browser.Get[[]string](observer,
				"seen.filter(n => n.who === 'tab-worker' && n.at > since).slice(0, 4).map(n => n.what)"))
			if way.name == "freeze" {
				assert.Equal(t, "resume", first[0], "the event comes before any task")
			}
		})
	}
}

// frozen is an observer's view of a stopped tab.
type frozen struct{ Page, Worker, Callbacks, Held, Pending int }

// A tab that crashes while it is frozen is not frozen afterwards, not even in a page that comes back from the back/forward cache.
func TestFrozenTabThatCrashes(t *testing.T) {
	l := openLab(t, browser.Options{})
	l.tab(t, "observer") // a tab is hidden behind another one
	tab := l.Open(t, l.server.URL("/blank"))
	home := browser.Get[string](tab, "location.href")
	tab.Freeze()
	tab.Crash()
	tab.Navigate(home)
	tab.MustEval("globalThis.kept = true; null", nil)
	tab.Navigate(l.server.URL("/lab"))
	_ = tab.Eval("history.back(); null", nil)
	tab.WaitFor("globalThis.kept", browser.Limit)
	tab.MustEval("await new Promise(done => setTimeout(done)); null", nil)
}
