package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// The site's data is cleared while a page holds the project. If another page acquires
// the project first, the holder learns that its lease is lost. If the holder renews first, the other page waits.
func TestClearedSiteDataLeavesOneHolder(t *testing.T) {
	t.Parallel()
	b := browser.Start(t, quick)
	for i, strategy := range []string{"web-lock", "file-lock"} {
		eachHost(t, func(t *testing.T, host string) {
			for _, way := range turns(i, "header", "tools") {
				w := world{b, browser.Serve(t, clearing(t))}
				options := fmt.Sprintf("{strategy: '%s', host: '%s'}", strategy, host)
				t.Run(strategy+"/"+way, func(t *testing.T) { testOneHolder(t, w, options, way) })
			}
		})
	}
}

func testOneHolder(t *testing.T, w world, options, way string) {
	clear := func(tab *browser.Tab) {
		if way == "tools" {
			tab.Clear(w.URL(""))
		} else {
			tab.MustEval("await fetch('/clear'); null", nil)
		}
	}
	holder, other := w.tab(t, options), w.tab(t, options)
	const holds = "lease = await hf.acquireProjectLock({timeoutMs: 5000, heartbeatIntervalMs: 1000, ttlMs: 30000})"
	holder.MustEval(holds, nil)
	holder.WaitFor("count('renewed') > 0", browser.Limit)
	holder.Suspend()
	clear(other)
	other.MustEval(holds, nil)
	holder.Continue()
	holder.WaitFor("lease.signal.aborted", browser.Limit)
	assert.Equal(t, "lease-lost", browser.Get[string](holder, "lease.signal.reason.code"))
	assert.False(t, browser.Get[bool](other, "lease.signal.aborted"))
	other.WaitFor("count('renewed') > 0", browser.Limit)

	holder.Close()
	third := w.tab(t, options)
	clear(third)
	renewed := browser.Get[int](other, "count('renewed')")
	other.WaitFor(fmt.Sprintf("count('renewed') > %d", renewed+1), browser.Limit) // in the new file
	assert.Equal(t, "acquire-timeout", browser.Get[string](third, "(await hf.acquireProjectLock({timeoutMs: 1500}).catch(e => e)).code"))
	assert.False(t, browser.Get[bool](other, "lease.signal.aborted"))
	other.MustEval("await lease.release()", nil)
	third.MustEval(holds+"; await lease.release()", nil)
}
