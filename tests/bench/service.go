package main

import (
	"fmt"
	"syscall"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// The names of the contenders in service.js, and of the ways in which a serving tab ends.
const (
	barePort    = "bare MessagePort"
	serviceCall = "service call"
	tabClosed   = "the serving tab is closed"
	tabKilled   = "the serving tab is killed"
)

// calls measures a call to another tab, and how long calls wait for the next tab when the serving one ends.
func (r *report) calls(open func() *browser.Tab, rounds int) error {
	answering, calling := open(), open()
	for _, tab := range []*browser.Tab{answering, calling} {
		tab.WaitFor("globalThis.bench", browser.Limit)
	}
	answering.MustEval("await bench.calls.serve(); null", nil)
	calling.MustEval("await bench.calls.meet(); await bench.calls.join(); null", nil)
	contenders := []contender{{name: barePort, times: 200}, {name: serviceCall, times: 200, target: 1.3}}
	measure := func(c contender) (float64, bool) {
		return browser.Get[float64](calling, fmt.Sprintf("bench.calls.cycle(%q, %d)", c.name, c.times)), true
	}
	for _, c := range contenders {
		for range 5 { // until the engine has compiled the code
			measure(c)
		}
	}
	r.addTo(barePort, "a call to another tab", contenders, sample(contenders, rounds, measure))
	ends := []contender{{name: tabClosed, target: 100}, {name: tabKilled, target: 100}}
	var failure error
	r.addTimes("the longest wait of a call", ends, sample(ends, max(3, rounds/3), func(c contender) (float64, bool) {
		wait, err := ended(answering, calling, c.name)
		if err != nil {
			failure = err
			return 0, false
		}
		answering, calling = calling, open()
		calling.WaitFor("globalThis.bench", browser.Limit)
		calling.MustEval("await bench.calls.join(); null", nil)
		return wait, true
	}))
	return failure
}

// ended ends the serving tab while the other one calls, and returns the longest wait of a call.
func ended(serving, calling *browser.Tab, way string) (ms float64, err error) {
	calling.MustEval("bench.calls.begin(); await new Promise(done => setTimeout(done, 100)); null", nil)
	if way == tabClosed {
		serving.Close()
	} else {
		pid, err := serving.Renderer()
		if err != nil {
			return 0, err
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			return 0, err
		}
	}
	calling.WaitFor("bench.calls.serves()", browser.Limit)
	return browser.Get[float64](calling, "await bench.calls.stop()"), nil
}
