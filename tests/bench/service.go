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
	bareLock    = ": a bare Web Lock"
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
	bare := map[string][]float64{}
	waits := sample(ends, max(3, rounds/3), func(c contender) (float64, bool) {
		wait, err := ended(answering, calling, c.name)
		if err != nil {
			failure = err
			return 0, false
		}
		answering, calling = calling, open()
		calling.WaitFor("globalThis.bench", browser.Limit)
		calling.MustEval("await bench.calls.join(); null", nil)
		bare[c.name+bareLock] = append(bare[c.name+bareLock], wait.Lock)
		return wait.Call, true
	})
	for _, c := range ends {
		r.addTimes("the longest wait of a call", []contender{{name: c.name + bareLock}}, bare)
		r.addTimes("the longest wait of a call", []contender{c}, waits)
	}
	return failure
}

// waits are the longest wait of a call in milliseconds, and the wait for a bare Web Lock of the same tab.
type waits struct{ Call, Lock float64 }

// ended ends the serving tab while the other one calls.
func ended(serving, calling *browser.Tab, way string) (w waits, err error) {
	calling.MustEval("bench.calls.begin(); await new Promise(done => setTimeout(done, 100)); null", nil)
	if way == tabClosed {
		serving.Close()
	} else {
		pid, err := serving.Renderer()
		if err != nil {
			return w, err
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			return w, err
		}
	}
	calling.WaitFor("bench.calls.serves()", browser.Limit)
	return browser.Get[waits](calling, "await bench.calls.stop()"), nil
}
