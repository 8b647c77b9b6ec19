package main

import (
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// A page opens as many documents as last says.
const tenth, last = 10, 40

// measuredAfter has the numbers of documents after which the memory is measured.
var measuredAfter = []int{0, 1, 2, tenth, last}

// perDocument is the maximum memory of each document after the first one, in KB.
const perDocument = 300

// A way is how a page opens its documents.
type way struct {
	name, host string
	apart      bool // each document has a Holdfast of its own
}

// opening holds the figures of one document: milliseconds until the user may type and until the text is saved, the
// bytes that the page and its workers use afterwards, and the number of these workers.
type opening struct {
	Editable, Saved float64
	memory          float64
	workers         int
}

// documents measures the time and the memory of the first and of the tenth document in a page.
func (r *report) documents(open func() *browser.Tab, rounds int) {
	ways := []way{
		{"worker, one Holdfast", "worker", false}, {"worker, a Holdfast each", "worker", true},
		{"page, one Holdfast", "page", false}, {"page, a Holdfast each", "page", true},
	}
	pages := map[string][][]opening{}
	for range rounds {
		for _, w := range ways {
			pages[w.name] = append(pages[w.name], w.openAll(open))
		}
	}
	row := func(what, unit string, target float64, of func(page []opening) float64) {
		for _, w := range ways {
			var values []float64
			for _, page := range pages[w.name] {
				values = append(values, of(page))
			}
			r.addRow(what, w.name, unit, values, target)
		}
	}
	row("first document: until the user may type", "ms", 0, func(page []opening) float64 { return page[1].Editable })
	row("tenth document: until the user may type", "ms", 0, func(page []opening) float64 { return page[tenth].Editable })
	row("first document: until its text is saved", "ms", 0, func(page []opening) float64 { return page[1].Saved })
	row("tenth document: until its text is saved", "ms", 0, func(page []opening) float64 { return page[tenth].Saved })
	row("memory of one document", "MB", 0, func(page []opening) float64 { return (page[1].memory - page[0].memory) / mebibyte })
	row("memory of ten documents", "MB", 0, func(page []opening) float64 { return (page[tenth].memory - page[0].memory) / mebibyte })
	row("memory of the second document", moreKB, 0, func(page []opening) float64 { return (page[2].memory - page[1].memory) / 1024 })
	row("memory of each from the second to the fortieth document", moreKB, perDocument, func(page []opening) float64 {
		return (page[last].memory - page[1].memory) / (last - 1) / 1024
	})
	row("workers of the second to the fortieth document", moreWorkers, 0, func(page []opening) float64 { return float64(page[last].workers - page[1].workers) })
}

// openAll opens the documents in a new page. Index 0 of the result is the page without a document.
func (w way) openAll(open func() *browser.Tab) []opening {
	tab := open()
	defer tab.Close()
	tab.WaitFor("globalThis.bench", browser.Limit)
	page := make([]opening, last+1)
	for n := range page {
		if n > 0 {
			page[n] = browser.Get[opening](tab, fmt.Sprintf("await bench.documents.open(%q, '%d', %v)", w.host, n, w.apart))
		}
		if slices.Contains(measuredAfter, n) {
			objects, wasm := tab.Memory()
			page[n].memory, page[n].workers = objects+wasm, tab.Workers()
		}
	}
	tab.MustEval("await bench.documents.close(); null", nil)
	return page
}
