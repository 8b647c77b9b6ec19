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
	"testing/cryptotest"
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
	t.Run("seed", func(t *testing.T) {
		cryptotest.SetGlobalRandom(t, seed)
		synctest.Test(t, func(*testing.T) {
			seedRuntime(seed | 1<<63) // 0 is none
			defer seedRuntime(0)
			result = Run(seed, *verboseFlag)
		})
	})
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
	collect := 400
	if Deterministic {
		collect = -1 // between runs only
		runtime.MemProfileRate = 0
	}
	defer debug.SetGCPercent(debug.SetGCPercent(collect))
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
		if runs++; Deterministic && runs%4 == 0 {
			runtime.GC()
		}
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

// A seed leads to the same steps each time, where the runtime has no other source of random numbers.
func TestSeedRepeats(t *testing.T) {
	if !Deterministic {
		t.Skip("the runtime draws random numbers of its own; make simulate builds with another one")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	first := *seedFlag
	if first == 0 {
		first = rand.Uint64N(1 << 32)
	}
	for seed := first; seed < first+20; seed++ {
		one, other := simulate(t, seed), simulate(t, seed)
		if strings.Join(one.Trace, "\n") != strings.Join(other.Trace, "\n") {
			t.Errorf("seed %d leads to two runs:\n%s", seed, difference(one.Trace, other.Trace))
		}
		runtime.GC()
	}
}

// difference returns the first steps in which two traces differ.
func difference(one, other []string) string {
	for i := range min(len(one), len(other)) {
		if one[i] != other[i] {
			return one[i] + "\n" + other[i]
		}
	}
	return "one goes on for longer"
}
