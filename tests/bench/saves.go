package main

import (
	"fmt"
	"os"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

const mebibyte = 1 << 20

// saves measures AutoSave: the cost of a mark for the page, a commit beside the bare write of the same bytes, and how
// long the page is blocked meanwhile.
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
				continue // until the engine has compiled the code
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

// memory measures whether memory grows with the number of saves: the memory in use by the page and its workers, and
// the resident memory of their process, much of which may be garbage.
func (r *report) memory(page *browser.Tab, saves int) error {
	page.WaitFor("globalThis.bench", browser.Limit)
	pid, err := page.Renderer()
	if err != nil {
		return err
	}
	whose := []string{"objects of the page and its workers", "memory of their Wasm", "resident in their process"}
	figures := make([][]float64, len(whose))
	marks := []int{saves / 10, saves / 2, saves}
	done := 0
	for _, mark := range marks {
		for ; done < mark; done += 50 { // each call has a time limit
			page.MustEval("bench.autosave.repeat('worker', 50)", nil)
		}
		resident := residentOf(pid)
		objects, wasm := page.Memory()
		for i, bytes := range []float64{objects, wasm, resident} {
			figures[i] = append(figures[i], bytes/mebibyte)
		}
	}
	for i, who := range whose {
		for j, mark := range marks {
			target := 0.0
			if j > 0 && i < 2 { // the resident memory also varies with the browser's own work
				target = figures[i][0] * 1.1
			}
			r.addRow("memory, "+who, fmt.Sprintf("after %d saves", mark), "MB", figures[i][j:j+1], target)
		}
	}
	return nil
}

// residentOf returns the resident memory of a process in bytes, or 0 without /proc.
func residentOf(pid int) float64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	var pages, resident float64
	_, _ = fmt.Sscan(string(data), &pages, &resident)
	return resident * float64(os.Getpagesize())
}

func (r *report) addRow(what, who, unit string, values []float64, target float64) {
	r.Rows = append(r.Rows, row{What: what, Who: who, Unit: unit, Median: median(values), Target: target, Values: values})
}
