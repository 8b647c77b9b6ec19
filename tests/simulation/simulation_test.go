package simulation

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var (
	seedFlag    = flag.Uint64("seed", 0, "the seed of the first run; the next ones count from it. 0 draws one")
	forFlag     = flag.Duration("for", 20*time.Second, "how long to go on with other seeds")
	stopFlag    = flag.Int("findings", 1, "after how many failing runs to stop")
	verboseFlag = flag.Bool("verbose", false, "note every request in the trace")
	runsFlag    = flag.Int("runs", 0, "how many runs; 0 is as many as -for allows")
)

// simulate runs one seed in a bubble of its own. In a run that hangs, virtual time stands still because a goroutine waits
// for a mutex or computes for ever.
func simulate(t *testing.T, seed uint64) (result Result) {
	defer time.AfterFunc(time.Minute, func() {
		debug.SetTraceback("all")
		panic(fmt.Sprintf("the run with seed %d hangs", seed))
	}).Stop()
	synctest.Test(t, func(*testing.T) { result = Run(seed, *verboseFlag) })
	return result
}

// maxFindings is how many findings of a run are printed. The first one tells most.
const maxFindings = 5

// report writes what a failing run did into a file, and fails the test.
func report(t *testing.T, r Result) {
	t.Helper()
	name := filepath.Join(os.TempDir(), fmt.Sprintf("simulation-%d.txt", r.Seed))
	text := strings.Join(r.Findings, "\n") + "\n\n" + strings.Join(r.Trace, "\n") + "\n"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Log(err)
	}
	t.Errorf("seed %d breaks a promise; its steps are in %s, and make simulate SEED=%d repeats it:\n%s",
		r.Seed, name, r.Seed, strings.Join(r.Findings[:min(len(r.Findings), maxFindings)], "\n"))
}

// TestSimulation runs one seed after the other for as long as -for says, and stops at the first broken promise.
func TestSimulation(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // one goroutine at a time
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	first := *seedFlag
	if first == 0 {
		first = rand.Uint64N(1 << 32)
	}
	began, runs, failed := time.Now(), 0, 0
	total := make(map[string]int)
	defer func() {
		took := time.Since(began)
		t.Logf("%d runs from seed %d in %s, %.0f a second: %v", runs, first, took.Round(time.Millisecond), float64(runs)/took.Seconds(), total)
	}()
	for seed := first; ; seed++ {
		r := simulate(t, seed)
		runs++
		for what, n := range r.Counts {
			total[what] += n
		}
		if len(r.Findings) > 0 {
			report(t, r)
			if failed++; failed >= *stopFlag {
				return
			}
		}
		if *runsFlag > 0 && runs >= *runsFlag || *runsFlag == 0 && time.Since(began) >= *forFlag {
			return
		}
	}
}
