package e2e

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// Heartbeats keep their pace in hidden tabs under Chromium's real throttling, including intensive throttling. In each
// tab a timer of the page is the control: it must stop for at least five seconds while the heartbeat continues. All
// times are of the page's monotonic clock, because the wall clock of a virtual machine steps, sometimes by seconds.
func TestHeartbeatsWhileHidden(t *testing.T) {
	t.Parallel()
	w := open(t, browser.Options{Throttling: true, Grace: time.Second})
	tabs := map[string]*browser.Tab{}
	for _, host := range []string{"worker", "page"} {
		tab := w.tab(t, at(host, "hidden-"+host))
		tabs[host] = tab
		tab.MustEval(`
			const gaps = []
			let last = 0, hiddenAt = 0
			document.addEventListener('visibilitychange', () => { hiddenAt = document.hidden ? now() : 0; last = now() })
			setTimeout(function step() { if (hiddenAt) gaps.push(now() - last); last = now(); setTimeout(step, 100) }, 100)
			const silence = () => Math.max(0, ...gaps, now() - last)
			lease = await hf.acquireProjectLock({heartbeatIntervalMs: 1000})`, nil)
	}
	for _, tab := range tabs {
		tab.Hide()
	}
	for _, tab := range tabs {
		tab.WaitFor("hiddenAt || (hiddenAt = last = now())", browser.Limit)
	}
	for host, tab := range tabs {
		tab.WaitFor("now() - hiddenAt > 16_000 && silence() > 5000", 40*time.Second)
		hiddenAt, until := browser.Get[float64](tab, "hiddenAt"), tab.Now()
		events := told(t, tab)
		assert.NotContains(t, kinds(events), "error")
		var renewals []float64
		for _, e := range only(events, "renewed") {
			renewals = append(renewals, e.number("seen"))
		}
		moments := slices.Concat([]float64{hiddenAt}, slices.DeleteFunc(renewals, func(seen float64) bool { return seen < hiddenAt }), []float64{until})
		longest := 0.0
		for i := range moments[1:] {
			longest = max(longest, moments[i+1]-moments[i])
		}
		t.Logf("%s: hidden for %.0f ms, %d renewals, longest gap %.0f ms; longest silence of the page's timers %.0f ms",
			host, until-hiddenAt, len(moments)-2, longest, browser.Get[float64](tab, "silence()"))
		assert.Less(t, longest, browser.Get[float64](tab, "silence()"), "the heartbeats go on while the timers of the page are silent for longer")
		// Without throttling, the page's own chain of 100 ms would have run at least 160 times.
		assert.Less(t, browser.Get[int](tab, "gaps.length"), 20)
		tab.MustEval("await lease.release(); await hf.close()", nil)
		tab.Quiet()
	}
}
