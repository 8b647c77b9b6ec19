package main

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/marked"
)

// The units of figures that may be zero.
const (
	share       = "%"
	moreKB      = "KB more"
	moreWorkers = "more workers"
)

// lines is the unit of a program's length.
const lines = "lines"

// none marks a round without a measurement.
const none = -1

type report struct {
	Browser string
	Machine string
	Rounds  int // 0 if the figures do not depend on the machine
	Rows    []row
}

// row is one figure.
type row struct {
	What   string  // what is measured
	Who    string  // the contender
	Unit   string  // of Median and, without a ratio, of Target
	Median float64 // 0 where it did not finish
	Ratio  float64 `json:",omitempty"` // to raw
	Target float64 `json:",omitempty"` // the maximum of Ratio, or of Median if there is no ratio
	Values []float64
}

func (r row) met() bool {
	if r.Ratio > 0 {
		return r.Ratio <= r.Target
	}
	return r.finished() && r.Median <= r.Target
}

// finished reports whether there is a figure.
func (r row) finished() bool {
	return r.Median != 0 || r.Unit == share || r.Unit == moreKB || r.Unit == moreWorkers
}

// add adds the figures of contenders that are compared with raw.
func (r *report) add(what string, contenders []contender, samples map[string][]float64) {
	r.addTo(raw, what, contenders, samples)
}

// addTo adds the figures of contenders that are compared with one of them.
func (r *report) addTo(base, what string, contenders []contender, samples map[string][]float64) {
	for _, c := range contenders {
		var values, ratios []float64
		for i, v := range samples[c.name] {
			if v != none {
				values = append(values, v*1000)
				ratios = append(ratios, v/samples[base][i])
			}
		}
		r.Rows = append(r.Rows, row{What: what, Who: c.name, Unit: "µs", Median: median(values), Ratio: median(ratios), Target: c.target, Values: values})
	}
}

// addTimes adds figures that are not compared.
func (r *report) addTimes(what string, contenders []contender, samples map[string][]float64) {
	for _, c := range contenders {
		values := slices.DeleteFunc(samples[c.name], func(v float64) bool { return v == none })
		r.Rows = append(r.Rows, row{What: what, Who: c.name, Unit: "ms", Median: median(values), Target: c.target, Values: values})
	}
}

// sizes adds the sizes that make build measured, if it measured any.
func (r *report) sizes(site string) {
	r.Rounds = 0
	var known map[string]struct{ Gzip, Brotli float64 }
	if data, err := os.ReadFile(".cache/sizes.json"); err == nil {
		_ = json.Unmarshal(data, &known)
	}
	sizeOf := func(file string) struct{ Gzip, Brotli float64 } {
		data, _ := os.ReadFile(filepath.Join(site, file))
		sum := sha256.Sum256(data)
		return known[hex.EncodeToString(sum[:])]
	}
	r.Rows = append(r.Rows,
		row{What: "size", Who: "facade, gzip", Unit: "KB", Median: sizeOf("holdfast.js").Gzip / 1024, Target: 8},
		row{What: "size", Who: "Wasm, brotli 11", Unit: "KB", Median: sizeOf("holdfast.wasm").Brotli / 1024, Target: 760})
}

// write replaces the table of a subject in the documents that show it.
func (r *report) write(folder, subject string) error {
	documents := []string{"performance.md"}
	if subject == "locks" || subject == "file" {
		documents = append(documents, "comparison.md")
	}
	for _, name := range documents {
		if err := marked.Replace(filepath.Join(folder, name), "<!-- "+subject+", measured -->", "<!-- end of "+subject+" -->", r.table(r.Rows)); err != nil {
			return err
		}
	}
	return nil
}

// table returns the report for people.
func (r *report) table(rows []row) string {
	var out strings.Builder
	if r.Rounds > 0 {
		fmt.Fprintf(&out, "%s on %s, load %s after the run; medians of %d rounds:\n\n", r.Browser, r.Machine, load(), r.Rounds)
	}
	head, line, ratios := "| | | median | target | |", "|---|---|--:|--:|---|", slices.ContainsFunc(rows, func(row row) bool { return row.Ratio > 0 })
	if ratios {
		head, line = "| | | median | ratio | target | |", "|---|---|--:|--:|--:|---|"
	}
	fmt.Fprintf(&out, "%s\n%s\n", head, line)
	for _, row := range rows {
		ratio := ""
		if ratios {
			ratio = row.ratio() + " |"
		}
		fmt.Fprintf(&out, "| %s | %s |%s |%s%s | %s |\n", row.What, row.Who, row.value(), ratio, row.target(), row.mark())
	}
	return out.String()
}

func (r row) value() string {
	switch {
	case r.Unit == share || r.Unit == moreKB:
		return fmt.Sprintf(" %.1f %s", r.Median, r.Unit)
	case !r.finished() && r.What == "size":
		return " not measured"
	case !r.finished():
		return " did not finish"
	case r.Unit == "µs" || r.Unit == lines || r.Unit == moreWorkers:
		return fmt.Sprintf(" %.0f %s", r.Median, r.Unit)
	case r.Median < 1:
		return fmt.Sprintf(" %.3f %s", r.Median, r.Unit)
	}
	return fmt.Sprintf(" %.1f %s", r.Median, r.Unit)
}

func (r row) ratio() string {
	if r.Ratio == 0 {
		return ""
	}
	return fmt.Sprintf(" %.2f", r.Ratio)
}

func (r row) target() string {
	switch {
	case r.Target == 0:
		return ""
	case r.Ratio > 0:
		return fmt.Sprintf(" ≤ %.2f", r.Target)
	}
	return fmt.Sprintf(" ≤ %g %s", r.Target, r.Unit)
}

func (r row) mark() string {
	switch {
	case r.Target == 0 || !r.finished():
		return ""
	case r.met():
		return "met"
	}
	return "missed"
}

// load returns the average number of programs that ran or waited for a processor in the last minute.
func load() string {
	text, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(text), " ")
	return cmp.Or(first, "unknown")
}

// machine returns the processor's name, if the system shows it.
func machine() string {
	name := "unknown processor"
	if file, err := os.Open("/proc/cpuinfo"); err == nil {
		defer func() { _ = file.Close() }()
		for lines := bufio.NewScanner(file); lines.Scan(); {
			if key, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(key) == "model name" {
				name = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("%s, %d cores, %s", name, runtime.NumCPU(), runtime.GOOS)
}
