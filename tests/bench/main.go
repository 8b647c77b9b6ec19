// Command bench measures Holdfast against raw Web Locks and against other packages, in
// one Chromium:
//
//	go run ./tests/bench [-json path] [-rounds n] [-site dir]
//
// It prints a Markdown table and writes the same as JSON. All contenders take turns in
// every round, so that what slows the machine slows them alike; a figure is the median
// over the rounds, a ratio the median of each round's ratio to raw.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

func main() {
	var o options
	flag.StringVar(&o.json, "json", ".cache/bench.json", "where the figures go as JSON")
	flag.IntVar(&o.rounds, "rounds", 30, "rounds in which all contenders take turns")
	flag.StringVar(&o.site, "site", "web/site", "the built site, with the package in it")
	flag.IntVar(&o.saves, "saves", 5000, "saves after which the memory is looked at")
	flag.BoolVar(&o.onlySaves, "only-saves", false, "measure AutoSave alone")
	flag.BoolVar(&o.onlyPlaces, "only-places", false, "measure places, slots and deadlocks alone")
	flag.BoolVar(&o.onlyJournal, "only-journal", false, "measure what the journal costs alone")
	flag.StringVar(&o.before, "before", "", "the built site of an older version, whose save of 1 MiB is measured in turn with this one's")
	flag.StringVar(&o.update, "update", "", "document into which the table of the journal is written")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "tests/bench:", err)
		os.Exit(1)
	}
}

type options struct {
	json, site string
	rounds     int
	saves      int
	onlySaves  bool
	onlyPlaces bool

	onlyJournal    bool
	before, update string
}

func run(o options) (err error) {
	if o.rounds < 1 {
		return errors.New("-rounds must be at least 1")
	}
	p := &program{}
	defer func() { err = errors.Join(p.end(recover()), err) }()
	server, err := serve(p, o.site)
	if err != nil {
		return err
	}
	b := browser.Start(p, browser.Options{})
	page := b.Open(p, server.URL("/bench"))
	r := report{Browser: browser.Get[string](page, `navigator.userAgent.match(/(?:Headless)?Chrom[^ ]*/)[0]`), Machine: machine(), Rounds: o.rounds}

	open := func() *browser.Tab { return b.Open(p, server.URL("/bench")) }
	if !o.onlySaves && !o.onlyPlaces {
		journal, err := journals(p, o, r, b, open)
		if err != nil || o.onlyJournal {
			return err
		}
		r.Rows = journal.Rows
	}
	if !o.onlySaves && !o.onlyPlaces {
		r.cycles(page, o.rounds)
		r.handovers(page, open(), o.rounds)
		r.fallback(page, open, o.rounds)
		r.loads(open, max(5, o.rounds/2))
	}
	if !o.onlySaves {
		r.places(page, o.rounds)
		r.deadlocks(page, open(), max(5, o.rounds/2))
	}
	if !o.onlyPlaces {
		saving := open()
		r.saves(saving, o.rounds)
		if err := r.memory(saving, o.saves); err != nil {
			return err
		}
	}
	r.sizes(o.site)

	fmt.Print(r.markdown())
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(o.json), 0o755); err != nil {
		return err
	}
	return os.WriteFile(o.json, append(data, '\n'), 0o644)
}

// median returns the middle value, or the mean of both; NaN has no place in values.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
