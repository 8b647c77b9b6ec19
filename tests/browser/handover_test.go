package browser_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// A waiter gets a raw Web Lock soon after the tab that held it is gone, for every way in which the tab can end and
// whether its page or its worker held the lock.
func TestHandover(t *testing.T) {
	l := openLab(t, browser.Options{Flags: []string{"disable-features=BackForwardCache"}})
	observer := l.tab(t, "observer")
	ways := []struct {
		name string
		end  func(holder *browser.Tab)
	}{
		{"close", (*browser.Tab).Close},
		{"crash", (*browser.Tab).Crash},
		{"reload", (*browser.Tab).Reload},
		{"navigate", func(holder *browser.Tab) { holder.Navigate(l.server.URL("/blank")) }},
		{"terminate the worker", func(holder *browser.Tab) { holder.MustEval("worker.terminate()", nil) }},
	}
	for _, take := range []string{"take('x')", "ask('take', 'x')"} {
		for _, way := range ways {
			if way.name == "terminate the worker" && take == "take('x')" {
				continue
			}
			holder := l.tab(t, "holder")
			holder.MustEval(take, nil)
			_, err := holder.Renderer() // known before the clock starts
			assert.NoError(t, err)
			observer.MustEval("globalThis.got = 0; take('x').then(() => { got = now() }); 1", nil)
			queued(t, observer, 1)
			start := clock()
			way.end(holder)
			observer.WaitFor("got", browser.Limit)
			latency := browser.Get[float64](observer, "got") - start
			t.Logf("%-17s %-21s %4.0f ms", take, way.name, latency)
			assert.Less(t, latency, browser.Prompt)
			observer.MustEval("give('x')", nil)
			if way.name != "close" {
				holder.Close()
			}
		}
	}
}

// A tab that navigates enters the back/forward cache and keeps its lock: a waiter starves until the tab closes.
func TestWaiterStarvesBehindACachedTab(t *testing.T) {
	l := openLab(t, browser.Options{})
	observer, holder := l.tab(t, "observer"), l.tab(t, "holder")
	holder.MustEval("take('x')", nil)
	observer.MustEval("globalThis.got = 0; take('x').then(() => { got = now() }); 1", nil)
	queued(t, observer, 1)
	holder.Navigate(l.server.URL("/blank"))
	assert.Equal(t, 0, browser.Get[int](observer, "await pause(1000); got"))
	start := clock()
	holder.Close()
	observer.WaitFor("got", browser.Limit)
	t.Logf("after the close: %.0f ms", browser.Get[float64](observer, "got")-start)
	assert.Less(t, clock()-start, browser.Prompt)
}
