package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// The inspector shows in each tab the holders and waiters, and for whom each waiter waits. Of two users that make a
// deadlock by hand, one gets the error.
func TestInspector(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	inspector := func() *browser.Tab {
		tab := w.Open(t, w.URL("/inspect.html"))
		tab.WaitFor("document.body.dataset.kind === 'free'", browser.Limit)
		tab.MustEval(`
			const $ = id => document.getElementById(id)
			const chips = kind => [...document.querySelectorAll('#tree .chip.' + kind)].map(e => e.textContent)
			const take = (paths, inside, slots = 1) => {
				$('paths').value = paths; $('slots').value = slots
				$('within').selectedIndex = inside ? $('within').options.length - 1 : 0
				$('take').requestSubmit()
			}
			const mine = () => [...$('mine').children].map(e => e.textContent)`, nil)
		return tab
	}
	a, b := inspector(), inspector()
	a.MustEval("take('u1/a1/r1'); null", nil)
	b.MustEval("take('u1/a1/r2'); null", nil)
	for _, tab := range []*browser.Tab{a, b} {
		tab.WaitFor("chips('holds').length === 2 && $('within').options.length === 2", browser.Limit)
	}
	a.MustEval("take('u1/a1/r2', true); null", nil)
	b.WaitFor("chips('waits').length === 1 && document.querySelectorAll('#edges path').length === 1", browser.Limit)
	assert.Contains(t, browser.Get[string](b, "chips('waits')[0]"), "waits for This tab")
	assert.Equal(t, 2, browser.Get[int](b, "document.querySelectorAll('#lanes svg').length"))
	b.MustEval("take('u1/a1/r1', true); null", nil)
	b.WaitFor("mine().some(text => text.includes('deadlock'))", browser.Limit)
	b.MustEval("[...$('mine').children].find(e => e.textContent.includes('held')).querySelector('button').click(); null", nil)
	a.WaitFor("chips('holds').length === 2 && chips('waits').length === 0", browser.Limit)

	b.MustEval("take('pool', false, 3); null", nil)
	a.WaitFor("document.querySelectorAll('#tree .slot').length === 3 && document.querySelectorAll('#tree .vacant').length === 2", browser.Limit)
	a.Quiet()
	b.Quiet()
}
