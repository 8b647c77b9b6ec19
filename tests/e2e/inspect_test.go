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

// The user leaves the inspector while it asks for the holders, and one of them does not answer. The browser keeps the page, which ends its
// runtime. As the user comes back, the inspector shows the holders again, although no other page of the demo reports a change.
func TestInspectorAfterReturn(t *testing.T) {
	t.Parallel()
	w := open(t, whole)
	silent := w.tab(t, named("worker", "project", "Silent"))
	silent.MustEval("lease = await hf.acquireProjectLock({path: ['a']}); null", nil)
	tab := w.Open(t, w.URL("/inspect.html"))
	tab.WaitFor("document.querySelectorAll('#tree .place').length > 0", browser.Limit)
	silent.WorkerEval("setTimeout(() => { for (;;); }); null", nil)
	silent.Freeze() // so that the page does not replace its worker
	tab.Show()
	tab.MustEval(`
		const {createHoldfast} = await import('/holdfast.js')
		const spare = createHoldfast({root: 'spare'}), all = Object.getPrototypeOf(spare), {inspect} = all
		await spare.close()
		const failures = []
		all.inspect = function () {
			const answer = inspect.call(this)
			answer.catch(({code}) => failures.push(code))
			if (!globalThis.left) location.href = '/blank'
			globalThis.left = true
			return answer
		}`, nil)
	tab.WaitFor("location.pathname === '/blank'", browser.Limit)
	silent.Close()
	other := w.tab(t, named("worker", "project", "Ben"))
	other.MustEval("lease = await hf.acquireProjectLock(); null", nil)
	tab.Show()
	tab.MustEval("setTimeout(() => history.back()); null", nil)
	tab.WaitFor("globalThis.left && document.querySelector('#tree .chip.holds')?.textContent.startsWith('Ben holds')", browser.Limit)
	assert.NotEmpty(t, browser.Get[[]string](tab, "failures"), "the runtime has ended during the question")
	tab.Quiet()
}
