// Command bench measures Holdfast beside raw Web Locks and other packages, in one Chromium:
//
//	go run ./tests/bench [-json path] [-rounds n] [-site dir] [-only subject] [-update folder]
//
// It prints Markdown tables and writes the same figures as JSON. With -update it writes each table into the
// documentation. All contenders take turns in every round, so that a busy machine slows all of them alike. A figure is
// the median over the rounds. A ratio is the median of each round's ratio to raw.
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
	flag.StringVar(&o.only, "only", "", "measure one subject alone: locks, file, ready, visits, places, calls, saves, documents, journal, recipes or size")
	flag.StringVar(&o.before, "before", "", "the built site of an older version, whose save of 1 MiB is measured in turn with this one's")
	flag.StringVar(&o.update, "update", "", "folder of performance.md and comparison.md, into which each table is written, between the marks of its subject")
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
	only       string
	before     string
	update     string
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
	open := func() *browser.Tab { return b.Open(p, server.URL("/bench")) }
	page := open()
	r := report{Browser: browser.Get[string](page, `navigator.userAgent.match(/(?:Headless)?Chrom[^ ]*/)[0]`), Machine: machine(), Rounds: o.rounds}
	if err := r.measure(o, subjects(p, o, b, page, open, server.URL)); err != nil {
		return err
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(o.json), 0o755); err != nil {
		return err
	}
	return os.WriteFile(o.json, append(data, '\n'), 0o644)
}

// subject is the subject of one table in the document.
type subject struct {
	name    string
	measure func(r *report) error
}

func subjects(p *program, o options, b *browser.Browser, page *browser.Tab, open func() *browser.Tab, url func(path string) string) []subject {
	never := func(measure func(r *report)) func(*report) error {
		return func(r *report) error {
			measure(r)
			return nil
		}
	}
	return []subject{
		{"journal", func(r *report) error {
			r.Rounds = max(3, o.rounds/6)
			r.journals(open, r.Rounds)
			return r.beforeAndAfter(p, o, b, open)
		}},
		{"locks", never(func(r *report) {
			r.cycles(page, o.rounds)
			r.handovers(page, open(), o.rounds)
		})},
		{"file", never(func(r *report) { r.fallback(open, o.rounds) })},
		{"ready", never(func(r *report) { r.loads(open, max(5, o.rounds/2)) })},
		{"visits", never(func(r *report) {
			r.Rounds = max(5, o.rounds/3)
			r.visits(open, url, r.Rounds)
		})},
		{"places", never(func(r *report) {
			r.places(page, o.rounds)
			r.deadlocks(page, open(), max(5, o.rounds/2))
		})},
		{"calls", func(r *report) error { return r.calls(open, o.rounds) }},
		{"saves", func(r *report) error {
			saving := open()
			r.saves(saving, o.rounds)
			return r.memory(saving, o.saves)
		}},
		{"documents", never(func(r *report) {
			r.Rounds = max(5, o.rounds/6)
			r.documents(open, r.Rounds)
		})},
		{"recipes", func(r *report) error { return r.recipes(".") }},
		{"size", never(func(r *report) { r.sizes(o.site) })},
	}
}

// measure measures the subjects and prints their tables. It writes each table into the document when it is complete.
func (r *report) measure(o options, all []subject) error {
	known := false
	for _, s := range all {
		if o.only != "" && o.only != s.name {
			continue
		}
		known = true
		of := report{Browser: r.Browser, Machine: r.Machine, Rounds: r.Rounds}
		if err := s.measure(&of); err != nil {
			return err
		}
		fmt.Println(of.table(of.Rows))
		if o.update != "" {
			if err := of.write(o.update, s.name); err != nil {
				return err
			}
		}
		r.Rows = append(r.Rows, of.Rows...)
	}
	if !known {
		return fmt.Errorf("-only %s is no subject; see -help", o.only)
	}
	return nil
}

// median returns the middle value, or the mean of the two middle values. values must not contain NaN.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
