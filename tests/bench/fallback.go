package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

const (
	crowd      = 8               // tabs that contend
	settleTime = 1 * time.Second // the time in which all of them receive the start time
)

// fallback measures the lock that replaces Web Locks where they are missing, beside a package for the same case and
// beside the browser's own locks.
func (r *report) fallback(open func() *browser.Tab, rounds int) {
	withoutWebLocks := func() *browser.Tab {
		tab := open()
		tab.WaitFor("globalThis.bench", browser.Limit)
		tab.MustEval("bench.removeWebLocks()", nil)
		return tab
	}
	cycles := []contender{
		{name: raw, times: 60},
		{name: fileWork, times: 40, target: 1.2},
		{name: filePage, times: 40, target: 2},
		{name: fileLease, times: 20},
		{name: tabsLock, times: 2, rare: true},
	}
	page := withoutWebLocks()
	cycle := func(c contender) (float64, bool) {
		return browser.Get[float64](page, fmt.Sprintf("bench.cycle(%q, %d)", c.name, c.times)), true
	}
	for _, c := range cycles {
		for range 5 { // until the engine has compiled the code
			if !c.rare {
				cycle(c)
			}
		}
	}
	r.addTimes(fileCycleRows, cycles, sample(cycles, rounds, cycle))
	page.Close()

	turns := []contender{{name: raw, times: 20}, {name: fileWork, times: 20, target: 10}, {name: filePage, times: 20, target: 10}, {name: tabsLock, times: 4, rare: true}}
	tabs := make([]*browser.Tab, crowd)
	for i := range tabs {
		tabs[i] = withoutWebLocks()
	}
	r.addTimes(fileHandoverRows, turns, sample(turns, max(5, rounds/3), func(c contender) (float64, bool) {
		return handover(tabs[0], tabs[1], c)
	}))
	r.crowds(tabs, max(3, rounds/6))
	for _, tab := range tabs {
		tab.Close()
	}
}

// crowds makes all tabs acquire one lock as often as they can. Each holds it for a moment.
func (r *report) crowds(tabs []*browser.Tab, rounds int) {
	for _, c := range []contender{{name: fileWork, times: 20}, {name: filePage, times: 20}, {name: tabsLock, times: 2}} {
		var perSecond, longest, unfair []float64
		for range rounds {
			grants, span, waits := contend(tabs, c)
			if waits == nil {
				continue
			}
			most, mean := slices.Max(waits), sum(waits)/float64(len(waits))
			perSecond = append(perSecond, float64(grants)*1000/span)
			longest = append(longest, most)
			unfair = append(unfair, most/mean)
			if c.name == tabsLock {
				break // one round of it takes some ten seconds
			}
		}
		target := 3.0
		if c.name == tabsLock {
			target = 0
		}
		r.Rows = append(r.Rows,
			row{What: crowdRows, Who: c.name + ", grants per second", Unit: "/s", Median: median(perSecond), Values: perSecond},
			row{What: crowdRows, Who: c.name + ", longest wait", Unit: "ms", Median: median(longest), Values: longest},
			row{What: crowdRows, Who: c.name + ", longest wait to the mean", Unit: "times", Median: median(unfair), Target: target, Values: unfair})
	}
}

// contend returns the number of grants, the milliseconds in which they happened, and the waiting time of each.
func contend(tabs []*browser.Tab, c contender) (grants int, span float64, waits []float64) {
	type outcome struct {
		Begun, Ended float64
		Waits        []float64
	}
	at := float64(time.Now().Add(settleTime).UnixMilli())
	outcomes := make(chan *outcome, len(tabs))
	for _, tab := range tabs {
		go func() {
			o := &outcome{}
			if tab.Eval(fmt.Sprintf("bench.contend(%q, %d, %f)", c.name, c.times, at), o) != nil {
				o = nil
			}
			outcomes <- o
		}()
	}
	var first, last float64
	failed := false
	for range tabs {
		o := <-outcomes
		if o == nil {
			failed = true
			continue
		}
		if first == 0 || o.Begun < first {
			first = o.Begun
		}
		last = max(last, o.Ended)
		waits = append(waits, o.Waits...)
	}
	if failed {
		return 0, 0, nil
	}
	return len(waits), last - first, waits
}

func sum(values []float64) (total float64) {
	for _, v := range values {
		total += v
	}
	return total
}
