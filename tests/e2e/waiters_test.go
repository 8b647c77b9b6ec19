package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// For every end of the holding tab, the oldest waiting tab acquires at once, and the others continue to wait. The
// three waiters are one of each kind of host and a younger one.
func TestWaitersInOrder(t *testing.T) {
	// A page in the back/forward cache keeps its lock by the platform's rules; see the harness's own tests.
	w := open(t, browser.Options{Shell: true, Flags: []string{"disable-features=BackForwardCache"}})
	ways := []struct {
		name string
		end  func(holder *browser.Tab)
	}{
		{"release", func(holder *browser.Tab) { holder.MustEval("await lease.release()", nil) }},
		{"close", (*browser.Tab).Close},
		{"reload", (*browser.Tab).Reload},
		{"crash", (*browser.Tab).Crash},
		{"navigate", func(holder *browser.Tab) { holder.Navigate(w.OtherURL("/blank")) }},
		{"runtime closed", func(holder *browser.Tab) { holder.MustEval("await hf.close()", nil) }},
	}
	var waiters []*browser.Tab
	for _, host := range []string{"worker", "page", "worker"} {
		waiters = append(waiters, w.tab(t, at(host, "queue")))
	}
	for i, way := range ways {
		for _, host := range []string{"worker", "page"} {
			t.Run(way.name+"/"+host, func(t *testing.T) {
				holder := w.tab(t, at(host, "queue"))
				holder.MustEval("lease = await hf.acquireProjectLock({ttlMs: 60000})", nil)
				turn := append(append([]*browser.Tab{}, waiters[i%3:]...), waiters[:i%3]...)
				for n, tab := range turn {
					waitInQueue(holder, tab, n)
				}
				_, err := holder.Renderer() // known before the clock starts
				require.NoError(t, err)

				start := clock()
				way.end(holder)
				turn[0].WaitFor("got", browser.Limit)
				latency := browser.Get[float64](turn[0], "got") - start
				t.Logf("%.0f ms", latency)
				assert.Less(t, latency, browser.Prompt)
				for _, tab := range turn[1:] {
					assert.Equal(t, []string{"attempt", "error", "waiting"}, browser.Get[[]string](tab, "types()"))
				}
				assert.Equal(t, 2, browser.Get[int](turn[0], "(await locks()).pending"))
				assertTheyFollow(t, turn)
			})
		}
	}
	for _, tab := range waiters {
		tab.Quiet()
	}
}

// waitInQueue has the tab wait behind the holder and n other tabs.
func waitInQueue(holder, tab *browser.Tab, n int) {
	// Retries would take ten minutes: only the queue can be as fast as this.
	tab.MustEval(`globalThis.got = 0; events.length = 0; globalThis.stop = new AbortController
		result = hf.acquireProjectLock({signal: stop.signal, backoff: {initialDelayMs: 600000, maxDelayMs: 600000, maxRetries: 0}})
			.then(l => { got = now(); lease = l }); result.catch(() => {}); 1`, nil)
	holder.WaitFor("(await locks()).pending === "+string(rune('1'+n)), browser.Limit)
}

// assertTheyFollow checks that the other waiters come next, in the order of their requests.
func assertTheyFollow(t *testing.T, turn []*browser.Tab) {
	t.Helper()
	turn[0].MustEval("await lease.release()", nil)
	turn[1].WaitFor("got", browser.Limit)
	assert.Zero(t, browser.Get[float64](turn[2], "got"))
	turn[2].MustEval("stop.abort(); await result.catch(() => {})", nil)
	turn[1].MustEval("await lease.release()", nil)
	free(turn[0])
}
