package main

import (
	"fmt"
	"os"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

const mebibyte = 1 << 20

// saves measures AutoSave: what a mark costs the page, a commit beside the bare write of the
// same bytes, and how long the page can do nothing else meanwhile.
func (r *report) saves(page *browser.Tab, rounds int) {
	page.WaitFor("globalThis.bench", browser.Limit)
	hosts := []string{"worker", "page"}
	mark := func(host string, n int, apart bool) float64 {
		return browser.Get[float64](page, fmt.Sprintf("bench.autosave.mark(%q, %d, %v)", host, n, apart))
	}
	for _, host := range hosts {
		mark(host, 1000, false)
		var row, apart []float64
		for range rounds {
			row = append(row, mark(host, 10_000, false))
			apart = append(apart, mark(host, 200, true))
		}
		r.addRow("markDirty", host+", 10,000 in a row", "µs a call", row, 5)
		r.addRow("markDirty", host+", each in a task", "µs a call", apart, 5)
	}

	took, blocked := map[string][]float64{}, map[string][]float64{}
	for round := range rounds + 3 {
		for _, who := range append([]string{raw}, hosts...) {
			got := browser.Get[struct{ MS, Longest float64 }](page, fmt.Sprintf("bench.autosave.commit(%q, %d)", who, mebibyte))
			if round < 3 {
				continue // until the engine has compiled what it will compile
			}
			took[who] = append(took[who], got.MS)
			blocked[who] = append(blocked[who], got.Longest)
		}
	}
	for _, who := range append([]string{raw}, hosts...) {
		var ratios []float64
		for i, ms := range took[who] {
			ratios = append(ratios, ms/took[raw][i])
		}
		target := 2.0
		if who == raw {
			target = 0
		}
		r.Rows = append(r.Rows, row{What: "save of 1 MiB", Who: who, Unit: "ms", Median: median(took[who]), Ratio: median(ratios), Target: target, Values: took[who]})
	}
	for _, who := range append([]string{raw}, hosts...) {
		r.addRow("longest the page is blocked by it", who, "ms", blocked[who], map[string]float64{"worker": 4, "page": 4}[who])
	}
}

// memory measures whether saving needs ever more of it: what the page's process has in memory.
func (r *report) memory(page *browser.Tab, saves int) error {
	page.WaitFor("globalThis.bench", browser.Limit)
	pid, err := page.Renderer()
	if err != nil {
		return err
	}
	resident := func(n int) float64 {
		for ; n > 0; n -= 100 { // each call is bounded in time
			page.MustEval(fmt.Sprintf("bench.autosave.repeat('worker', %d)", min(n, 100)), nil)
		}
		var pages, inUse float64
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
		if err == nil {
			_, err = fmt.Sscan(string(data), &pages, &inUse)
		}
		if err != nil {
			return 0 // where there is no /proc it is not measured
		}
		return inUse * float64(os.Getpagesize()) / mebibyte
	}
	before := resident(saves / 10)
	after := resident(saves)
	r.addRow("memory of the page's process", fmt.Sprintf("after %d saves", saves/10), "MB", []float64{before}, 0)
	r.addRow("memory of the page's process", fmt.Sprintf("after %d more", saves), "MB", []float64{after}, before*1.2)
	return nil
}

func (r *report) addRow(what, who, unit string, values []float64, target float64) {
	r.Rows = append(r.Rows, row{What: what, Who: who, Unit: unit, Median: median(values), Target: target, Values: values})
}
