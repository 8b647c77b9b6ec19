package simulation

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	seedFlag    = flag.Uint64("seed", 0, "the seed of the first run; the next ones count from it. 0 draws one")
	forFlag     = flag.Duration("for", 20*time.Second, "how long to go on with other seeds")
	stopFlag    = flag.Int("findings", 1, "after how many failing runs to stop")
	traceFlag   = flag.String("trace", "", "a file for the steps of the last run")
	verboseFlag = flag.Bool("verbose", false, "note every request in the trace")
	runsFlag    = flag.Int("runs", 0, "how many runs; 0 is as many as -for allows")
)

// hangLimit is the maximum real time of a run. The largest ones compute for ten seconds, and longer beside other programs.
const hangLimit = 5 * time.Minute

// simulate runs one seed in its own bubble. In a run that hangs, virtual time stops because a goroutine waits for a
// mutex or computes forever.
func simulate(t *testing.T, seed uint64, run func(seed uint64, verbose bool) Result) (result Result) {
	defer time.AfterFunc(hangLimit, func() {
		debug.SetTraceback("all")
		panic(fmt.Sprintf("the run with seed %d hangs", seed))
	}).Stop()
	t.Run("seed", func(t *testing.T) {
		cryptotest.SetGlobalRandom(t, seed)
		synctest.Test(t, func(*testing.T) {
			seedRuntime(seed | 1<<63) // 0 means no seed
			defer seedRuntime(0)
			result = run(seed, *verboseFlag)
		})
	})
	return result
}

// maxFindings is how many findings of a run are printed. The first one is the most useful.
const maxFindings = 5

// report writes the steps of a failing run into a file, and fails the test.
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

// Tabs, browsers and servers keep their promises about leases and texts.
func TestSimulation(t *testing.T) { runSeeds(t, Run) }

// The rooms of the server keep theirs: no join and no answer is lost, hidden answers stay hidden, and nobody who has left stays.
func TestSimulatedRooms(t *testing.T) { runSeeds(t, RunRooms) }

// runSeeds runs one seed after the other for the time of -for, and stops at the first broken promise.
func runSeeds(t *testing.T, run func(seed uint64, verbose bool) Result) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // one goroutine at a time
	collect := 400
	if Deterministic {
		collect = -1 // only between runs
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
		r := simulate(t, seed, run)
		if runs++; Deterministic && runs%4 == 0 {
			runtime.GC()
		}
		if *traceFlag != "" {
			require.NoError(t, os.WriteFile(*traceFlag, []byte(strings.Join(r.Trace, "\n")+"\n"), 0o600))
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

// Most seeds lead to the same steps each time, in a separate process whose runtime draws no random numbers of its
// own. The order of a map whose keys are pointers remains random.
func TestSeedRepeats(t *testing.T) {
	if !Deterministic {
		t.Skip("the runtime draws random numbers of its own; make simulate builds with another one")
	}
	first := *seedFlag
	if first == 0 {
		first = rand.Uint64N(1 << 32)
	}
	same := 0
	for seed := first; seed < first+10; seed++ {
		var traces [2][]byte
		for i := range traces {
			trace := filepath.Join(t.TempDir(), "trace")
			run := exec.Command(os.Args[0], "-test.run", "TestSimulation$", "-seed", strconv.FormatUint(seed, 10), "-runs", "1", "-trace", trace)
			_ = run.Run() // it may have findings
			var err error
			traces[i], err = os.ReadFile(trace)
			require.NoError(t, err)
		}
		if bytes.Equal(traces[0], traces[1]) {
			same++
		} else {
			t.Logf("seed %d leads to two runs", seed)
		}
	}
	assert.GreaterOrEqual(t, same, 5, "of 10 seeds")
}
