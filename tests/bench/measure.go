package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// The names of the contenders in page.js.
const (
	raw       = "raw"
	rawWorker = "raw in a worker"
	inPage    = "holdfast, page"
	inWorker  = "holdfast, worker"
	leasePage = "lease, page"
	leaseWork = "lease, worker"
	tabsLock  = "browser-tabs-lock"
	polyfill  = "navigator.locks"
	fileWork  = "file lock, worker"
	filePage  = "file lock, page"
	fileLease = "file lease, worker"

	recordStep = "one step over a record"
	inSequence = "four raw requests, in sequence"
	inParallel = "four raw requests, in parallel"
	leastLease = "the locks and the record of a path, in plain JavaScript"
	slotRaw    = "the raw requests of a slot, in parallel"
	slotFewest = "the fewest raw requests of a slot, in parallel"
)

// The names of rows of the locks.
const (
	cycleRows        = "uncontended lock and unlock"
	handoverRows     = "handover between two tabs"
	fileCycleRows    = "over a file: uncontended lock and unlock"
	fileHandoverRows = "over a file: handover between two tabs"
	crowdRows        = "over a file: eight tabs contend"
)

// contender is one way to lock, with its number of cycles per round. A round of each contender takes some ten
// milliseconds; slow contenders take longer.
type contender struct {
	name   string
	times  int
	target float64 // the highest allowed ratio to raw; 0 for none
	rare   bool    // takes part in one round of five
}

func (c contender) skips(round int) bool { return c.rare && round%5 != 0 }

// cycles measures lock and unlock without contention.
func (r *report) cycles(page *browser.Tab, rounds int) {
	contenders := []contender{
		{name: raw, times: 100},
		{name: inPage, times: 100, target: 1.15},
		{name: rawWorker, times: 60},
		{name: inWorker, times: 60, target: 2},
		{name: leasePage, times: 20},
		{name: leaseWork, times: 20},
		{name: polyfill, times: 20},
		{name: tabsLock, times: 2, rare: true},
	}
	page.WaitFor("globalThis.bench", browser.Limit)
	measure := func(c contender, n int) float64 {
		return browser.Get[float64](page, fmt.Sprintf("bench.cycle(%q, %d)", c.name, n))
	}
	for _, c := range contenders {
		for range 5 { // until the engine has compiled the code
			if !c.rare {
				measure(c, 2*c.times)
			}
		}
	}
	r.add(cycleRows, contenders, sample(contenders, rounds, func(c contender) (float64, bool) {
		return measure(c, c.times), true
	}))
}

// places measures leases beside what they cost at the least: a lease on the whole project beside one step over a record,
// and leases on a path and on a slot beside the equivalent raw requests.
func (r *report) places(page *browser.Tab, rounds int) {
	page.WaitFor("globalThis.bench", browser.Limit)
	whole := []contender{
		{name: recordStep, times: 20},
		{name: leasePage, times: 20, target: 2.5},
		{name: leaseWork, times: 20, target: 2.5},
	}
	path := []contender{
		{name: inSequence, times: 20},
		{name: inParallel, times: 20},
		{name: "path, Go Locker in the page", times: 40, target: 1.3},
		{name: "path, Go Locker in a worker", times: 40, target: 1.3},
		{name: leastLease, times: 20},
		{name: "path, page", times: 20, target: 1.63},
		{name: "path, worker", times: 20, target: 1.63},
		{name: "slot, page", times: 20, target: 2},
		{name: "slot, worker", times: 20, target: 2},
	}
	slot := []contender{
		{name: raw, times: 40},
		{name: slotRaw, times: 40},
		{name: slotFewest, times: 40},
		{name: "slot, Go Locker in the page", times: 40, target: 1.5},
		{name: "slot, Go Locker in a worker", times: 40, target: 1.5},
	}
	measure := func(c contender) (float64, bool) {
		return browser.Get[float64](page, fmt.Sprintf("bench.cycle(%q, %d)", c.name, c.times)), true
	}
	for _, c := range slices.Concat(whole, path, slot) {
		for range 3 {
			measure(c)
		}
	}
	r.addTo(recordStep, "a lease on the whole project, to one step over a record", whole, sample(whole, rounds, measure))
	r.addTo(inSequence, "a lease on a path or slot, to four raw requests in sequence", path, sample(path, rounds, measure))
	r.add("one of three slots", slot, sample(slot, rounds, measure))
}

// deadlocks measures the time from the request that closes a cycle of two tabs to its failure.
func (r *report) deadlocks(a, b *browser.Tab, rounds int) {
	for i, tab := range []*browser.Tab{a, b} {
		tab.WaitFor("globalThis.bench", browser.Limit)
		tab.MustEval(fmt.Sprintf("await bench.nest(%d); null", i), nil)
	}
	hosts := []contender{{name: "cycle of two tabs, worker", target: 1000}}
	r.addTimes("deadlock, until one waiter gets the error", hosts, sample(hosts, rounds, func(contender) (float64, bool) {
		a.MustEval("bench.wait(0); null", nil)
		a.WaitFor("bench.waits()", browser.Limit)
		ms := browser.Get[float64](b, "await bench.wait(1)")
		b.MustEval("await bench.leave(1); null", nil)
		a.MustEval("await bench.granted(); await bench.leave(0); null", nil)
		a.MustEval("await bench.nest(0); null", nil)
		b.MustEval("await bench.nest(1); null", nil)
		return ms, ms > 0
	}))
}

// handovers measures the time from the end of a hold in one tab to the callback in the other.
func (r *report) handovers(a, b *browser.Tab, rounds int) {
	contenders := []contender{
		{name: raw, times: 20},
		{name: inPage, times: 20, target: 1.2},
		{name: rawWorker, times: 20},
		{name: inWorker, times: 20, target: 1.2},
		{name: polyfill, times: 10, rare: true},
		{name: tabsLock, times: 4, rare: true},
	}
	b.WaitFor("globalThis.bench", browser.Limit)
	for _, c := range contenders {
		if !c.rare {
			handover(a, b, c)
			handover(a, b, c)
		}
	}
	r.add(handoverRows, contenders, sample(contenders, rounds, func(c contender) (float64, bool) {
		return handover(a, b, c)
	}))
}

// hold is one period in which a tab holds the lock, in milliseconds of the common clock.
type hold struct {
	From, To float64
	tab      int
}

// handover lets two tabs take turns. Both directions count alike, so differences of their clocks cancel out. ok is
// false if the turns did not end in time.
func handover(a, b *browser.Tab, c contender) (ms float64, ok bool) {
	script := fmt.Sprintf("bench.hold(%q, %d, 3)", c.name, c.times)
	turns := make(chan []hold, 2)
	for i, tab := range []*browser.Tab{a, b} {
		go func() {
			var holds []hold
			if err := tab.Eval(script, &holds); err != nil {
				holds = nil
			}
			for j := range holds {
				holds[j].tab = i
			}
			turns <- holds
		}()
	}
	first, second := <-turns, <-turns
	if first == nil || second == nil {
		return 0, false
	}
	all := append(first, second...)
	slices.SortFunc(all, func(x, y hold) int { return int(x.From*1000) - int(y.From*1000) })
	var directions [2][]float64
	for i := 1; i < len(all); i++ {
		if from, to := all[i-1], all[i]; from.tab != to.tab {
			directions[to.tab] = append(directions[to.tab], to.From-from.To)
		}
	}
	if len(directions[0]) == 0 || len(directions[1]) == 0 {
		return 0, false
	}
	return (median(directions[0]) + median(directions[1])) / 2, true
}

// loads measures openHoldfast until it is ready, each time in a new tab.
func (r *report) loads(open func() *browser.Tab, rounds int) {
	contenders := []contender{
		{name: "page, warm cache", target: 120}, {name: "worker, warm cache", target: 120},
		{name: "page, cold cache"}, {name: "worker, cold cache"},
	}
	n, stay := 0, 6*time.Second // Chromium stores the compiled code once nothing was compiled for two seconds
	measure := func(c contender) (float64, bool) {
		host, base := "page", "/"
		if c.name[0] == 'w' {
			host = "worker"
		}
		if c.target == 0 {
			n++
			base = fmt.Sprintf("/cold/%d/", n)
		}
		tab := open()
		defer tab.Close()
		tab.WaitFor("globalThis.bench", browser.Limit)
		ms := browser.Get[float64](tab, fmt.Sprintf("bench.load(%q, %q)", base, host))
		time.Sleep(stay)
		return ms, true
	}
	for range 2 {
		for _, c := range contenders[:2] {
			measure(c)
		}
	}
	stay = 200 * time.Millisecond // the browser writes its cache meanwhile
	r.addTimes("openHoldfast until ready", contenders, sample(contenders, rounds, measure))
}

// sample measures all contenders in turn, round after round. It skips a contender after its first failure.
func sample(contenders []contender, rounds int, measure func(contender) (float64, bool)) map[string][]float64 {
	samples := map[string][]float64{}
	failed := map[string]bool{}
	for round := range rounds {
		for _, c := range contenders {
			if failed[c.name] || c.skips(round) {
				samples[c.name] = append(samples[c.name], none)
				continue
			}
			value, ok := measure(c)
			if !ok {
				failed[c.name], value = true, none
			}
			samples[c.name] = append(samples[c.name], value)
		}
	}
	return samples
}
