package main

import (
	"fmt"
	"os"
	"slices"
	"time"
)

// table is what is printed: a line a figure, with the target where there is one.
type table struct{ rows []row }

type row struct{ what, who, figure, target string }

func (t *table) add(what, who, figure, target string) {
	t.rows = append(t.rows, row{what, who, figure, target})
}

func (t *table) print() {
	fmt.Println("| What | Who | Figure | Target |")
	fmt.Println("|---|---|---|---|")
	for _, r := range t.rows {
		fmt.Printf("| %s | %s | %s | %s |\n", r.what, r.who, r.figure, r.target)
	}
}

// acquire measures the acquisitions of a cycle of acquire and release.
func (t *table) acquire(who, target string, rounds int, cycle func(i int) (time.Duration, error)) error {
	return t.repeat("acquire, p50 and p99", who, target, rounds, cycle)
}

// repeat measures what a cycle says it took.
func (t *table) repeat(what, who, target string, rounds int, cycle func(i int) (time.Duration, error)) error {
	var times []time.Duration
	for i := range rounds + rounds/10 {
		d, err := cycle(i)
		if err != nil {
			return fmt.Errorf("%s: %w", who, err)
		}
		if i >= rounds/10 { // the first are the warm-up
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

// start measures how large the binary is and how soon it is ready.
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
