package e2e

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// While the module of services does not arrive, close() of a service or of its Holdfast settles, and the calls that wait are aborted.
func TestCloseWhileServiceLoads(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	for _, closed := range []string{"service", "hf"} {
		t.Run(closed, func(t *testing.T) {
			n.fail("/holdfast-serve.js", stall)
			tab := w.tab(t, at("worker", "loading-"+closed))
			tab.MustEval(services, nil)
			tab.MustEval("join('late'); record('call', service.call('sum', 1, 2)); "+closed+".close().then(() => { outcomes.closed = 'closed' }); 1", nil)
			tab.WaitFor("outcomes.closed === 'closed' && outcomes.call === 'aborted'", browser.Limit)
			assert.Equal(t, "aborted", browser.Get[string](tab, "await service.call('sum', 1, 2).catch(e => e.code)"))
			assert.Equal(t, 0, browser.Get[int](tab, "starts"))
			tab.MustEval("await hf.close(); 1", nil)
			eventually(t, func() bool { return tab.Workers() == 0 }, "a worker is left")
			tab.Quiet()
			tab.Close() // the module must not be on its way in the next test
		})
	}
}

// A call of a service whose module could not be loaded loads it again, as "load-failed" promises.
func TestServiceLoadsAgain(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	n.fail("/holdfast-serve.js", http.NotFound)
	tab := w.tab(t, at("worker", "loads-again"))
	tab.MustEval(services, nil)
	tab.MustEval("join('again'); record('first', service.call('sum', 1, 2)); 1", nil)
	tab.WaitFor("outcomes.first === 'load-failed'", browser.Limit)
	assert.Equal(t, 3, browser.Get[int](tab, "await service.call('sum', 1, 2)"))
	assert.True(t, browser.Get[bool](tab, "service.serving"))
	tab.Quiet("404")
}

// A call that the page makes in the microtasks in which the module of services arrives comes after the calls that waited for the module.
func TestServiceCallsKeepOrderAsItLoads(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	tab := w.tab(t, at("worker", "loading-order"))
	tab.MustEval(services, nil)
	tab.MustEval(`
		const {defineProperties} = Object
		Object.defineProperties = (object, all) => {
			defineProperties(object, all)
			if (object === service) record('late', service.call('order', 'late'))
			return object
		}
		join('order')
		record('early', service.call('order', 'early'))
		1`, nil)
	tab.WaitFor("outcomes.early && outcomes.late", browser.Limit)
	assert.Equal(t, []string{"early", "late"}, browser.Get[[]string](tab, "await service.call('order', 'end').then(log => log.slice(0, 2))"))
	tab.MustEval("await hf.close(); 1", nil)
	tab.Quiet()
}
