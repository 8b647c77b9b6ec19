package main

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// table is the printed table: one line per figure, with its target if there is one.
type table struct {
	load string // of the machine before the first figure
	rows []row
}

type row struct{ what, who, figure, target string }

func (t *table) add(what, who, figure, target string) {
	t.rows = append(t.rows, row{what, who, figure, target})
}

// String returns the table with the name of the measuring machine.
func (t *table) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s, %s/%s, %d cores, load %s before the run:\n\n", processor(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), t.load)
	fmt.Fprint(&out, "| What | Who | Figure | Target |\n|---|---|---|---|\n")
	for _, r := range t.rows {
		fmt.Fprintf(&out, "| %s | %s | %s | %s |\n", r.what, r.who, r.figure, r.target)
	}
	return out.String()
}

const (
	openMark  = "<!-- server, measured -->"
	closeMark = "<!-- end of server -->"
)

// write replaces the server's table in a document. An empty path does nothing.
func (t *table) write(path string) error {
	if path == "" {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, begins := strings.Cut(string(text), openMark)
	_, after, ends := strings.Cut(rest, closeMark)
	if !begins || !ends {
		return fmt.Errorf("%s has no marks %s and %s", path, openMark, closeMark)
	}
	return os.WriteFile(path, []byte(before+openMark+"\n\n"+t.String()+closeMark+after), 0o644)
}

// load returns the average number of programs that ran or waited for a processor in the last minute.
func load() string {
	text, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(text), " ")
	return cmp.Or(first, "unknown")
}

// processor returns the name of the processor.
func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	_, rest, _ := strings.Cut(string(text), "model name")
	line, _, _ := strings.Cut(rest, "\n")
	return cmp.Or(strings.Trim(line, "\t :"), "unknown processor")
}

// acquire measures the acquisitions of a cycle of acquire and release.
func (t *table) acquire(who, target string, rounds int, cycle func(i int) (time.Duration, error)) error {
	return t.repeat("acquire, p50 and p99", who, target, rounds, cycle)
}

// repeat measures the durations that cycle returns.
func (t *table) repeat(what, who, target string, rounds int, cycle func(i int) (time.Duration, error)) error {
	var times []time.Duration
	for i := range rounds + rounds/10 {
		d, err := cycle(i)
		if err != nil {
			return fmt.Errorf("%s: %w", who, err)
		}
		if i >= rounds/10 { // the first rounds are the warm-up
			times = append(times, d)
		}
	}
	t.add(what, who, fmt.Sprintf("%.2f ms, %.2f ms", ms(quantile(times, .5)), ms(quantile(times, .99))), target)
	return nil
}

func quantile(times []time.Duration, q float64) time.Duration {
	slices.Sort(times)
	return times[min(len(times)-1, int(float64(len(times))*q))]
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// start measures the size of the binary and its time to become ready.
func (t *table) start(binary string) error {
	info, err := os.Stat(binary)
	if err != nil {
		return err
	}
	t.add("stripped binary", "holdfast", fmt.Sprintf("%.1f MB", float64(info.Size())/1e6), "32 MB")
	var times []time.Duration
	for range 10 {
		s, err := startServer(binary)
		if err != nil {
			return err
		}
		times = append(times, s.readyAfter)
		s.stop()
	}
	t.add("ready after the start, median and worst of 10", "holdfast",
		fmt.Sprintf("%.0f ms, %.0f ms", ms(quantile(times, .5)), ms(quantile(times, 1))), "500 ms")
	return nil
}
