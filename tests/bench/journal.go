package main

import (
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// typing is how long the text is typed in one measurement.
const typing = 4 * time.Second

var journalSizes = []struct {
	name  string
	bytes int
}{{"10 KB", 10_000}, {"1 MB", 1_000_000}, {"10 MB", 10_000_000}}

// journals measures the journal's share of the page's main thread during typing, beside typing without a journal. It
// also measures how long the page's listeners take at its end with 6 MB of unsaved text.
func (r *report) journals(open func() *browser.Tab, rounds int) {
	for _, host := range []string{"worker", "page"} {
		for _, size := range journalSizes {
			marks := r.journal(open, host, size.name, size.bytes, rounds)
			r.addRow("markDirty while the journal runs, each in a task", host+", "+size.name, "µs a call", marks, 5)
		}
	}
	for _, host := range []string{"worker", "page"} {
		for _, begun := range []string{"not journalled yet", "journalled"} {
			var took []float64
			for range rounds {
				took = append(took, ending(open, host, begun == "journalled"))
			}
			r.addRow("end of a page with 6 MB unsaved, its listeners", host+", "+begun, "ms", took, 10)
		}
	}
}

// journal measures one document, alternating with and without the journal.
func (r *report) journal(open func() *browser.Tab, host, name string, size, rounds int) (marks []float64) {
	shares := map[int][]float64{}
	for range rounds {
		for _, every := range []int{0, 200} {
			tab := open()
			tab.WaitFor("globalThis.bench", browser.Limit)
			tab.MustEval(fmt.Sprintf("await bench.journal.begin(%q, %d, %d); null", host, size, every), nil)
			tab.MustEval("await bench.journal.type(1000); null", nil) // the interval has adapted
			before, begun := tab.Busy(), time.Now()
			tab.MustEval(fmt.Sprintf("await bench.journal.type(%d); null", typing.Milliseconds()), nil)
			shares[every] = append(shares[every], 100*float64(tab.Busy()-before)/float64(time.Since(begun)))
			if every > 0 {
				tab.MustEval("await bench.journal.mark(1000); null", nil) // the engine has compiled the code
				marks = append(marks, browser.Get[float64](tab, "bench.journal.mark(1000)"))
			}
			tab.MustEval("await bench.journal.end(); null", nil)
			tab.Close()
		}
	}
	var more []float64
	for i, with := range shares[200] {
		more = append(more, max(with-shares[0][i], 0))
	}
	what := "share of the main thread while typing"
	r.addRow(what, host+", "+name+", no journal", share, shares[0], 0)
	r.addRow(what, host+", "+name+", the journal's part", share, more, 5)
	return marks
}

// ending ends a page and returns how long its listeners for the end took, in milliseconds.
func ending(open func() *browser.Tab, host string, journalled bool) float64 {
	tab := open()
	defer tab.Close()
	tab.WaitFor("globalThis.bench", browser.Limit)
	tab.MustEval(fmt.Sprintf("await bench.journal.begin(%q, 1000, 200); bench.journal.put(6e6); null", host), nil)
	if journalled {
		time.Sleep(2 * time.Second) // no test depends on this time, only the figure does
	}
	tab.Reload()
	tab.WaitFor("globalThis.bench", browser.Limit)
	took := browser.Get[map[string]float64](tab, "bench.journal.took()")
	return took["pagehide"] + took["visibilitychange"]
}

// beforeAndAfter measures a commit of 1 MiB, alternating between this version and an older one.
func (r *report) beforeAndAfter(p *program, o options, b *browser.Browser, open func() *browser.Tab) error {
	if o.before == "" {
		return nil
	}
	older, err := serve(p, o.before)
	if err != nil {
		return err
	}
	tabs := map[string]*browser.Tab{"before": b.Open(p, older.URL("/bench")), "now": open()}
	took := map[string][]float64{}
	for round := range r.Rounds*3 + 3 {
		for _, when := range []string{"before", "now"} {
			tab := tabs[when]
			tab.WaitFor("globalThis.bench", browser.Limit)
			for _, host := range []string{"worker", "page"} {
				got := browser.Get[struct{ MS float64 }](tab, fmt.Sprintf("bench.autosave.commit(%q, %d)", host, mebibyte))
				if round >= 3 { // the engine has compiled the code by then
					took[host+", "+when] = append(took[host+", "+when], got.MS)
				}
			}
		}
	}
	for _, host := range []string{"worker", "page"} {
		for _, when := range []string{"before", "now"} {
			r.addRow("save of 1 MiB", host+", "+when, "ms", took[host+", "+when], 0)
		}
	}
	for _, tab := range tabs {
		tab.Close()
	}
	return nil
}
