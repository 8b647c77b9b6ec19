package race

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

var (
	grants = flag.Int("grants", 120, "grants to see in each race")
	every  = flag.Duration("every", time.Second, "how often something is ended")
	seed   = flag.Uint64("seed", 0, "of everything that is left to chance, to play a race again; 0 draws one")
)

const (
	tabs    = 3
	workers = 2 // in each tab, besides the page itself
	// served is the maximum time for a contender to end its last turn: all others may come before it.
	served = 30 * time.Second
)

// runner is one race in one browser.
type runner struct {
	t        *testing.T
	browser  *browser.Browser
	server   *browser.Server
	referee  *referee
	random   *rand.Rand
	strategy string
	fault    bool
	tabs     [tabs]*browser.Tab
	born     int // contenders so far
	events   map[string]int
}

// No two contenders hold the lock at once, and none waits forever, whatever ends meanwhile.
func TestRace(t *testing.T) {
	// Beside Web Locks, the file arbitrates nothing: a page takes the Web Lock first.
	for name, strategy := range map[string]string{"web-lock": "web-lock", "file-lock": "file-lock", "file alone": "file-lock"} {
		t.Run(name, func(t *testing.T) {
			r := start(t, strategy, name == "file alone", false)
			begun := time.Now()
			// A seed determines the actions and their targets; the machine determines their times.
			for limit := begun.Add(time.Duration(*grants) * time.Second); r.referee.Entries() < *grants && time.Now().Before(limit); {
				r.strike()
				time.Sleep(*every/2 + time.Duration(r.random.Int64N(int64(*every))))
			}
			r.finish()
			t.Logf("%d grants in %v; %v", r.referee.Entries(), time.Since(begun).Round(time.Second), r.events)
			assert.GreaterOrEqual(t, r.referee.Entries(), *grants)
			assert.Empty(t, r.referee.Violations())
			assert.Empty(t, r.referee.failures())
			r.free()
		})
	}
}

// The same race detects a lock that grants to several contenders.
func TestRaceFindsADoubleGrant(t *testing.T) {
	r := start(t, "web-lock", false, true)
	require.Eventually(t, func() bool {
		return strings.Contains(strings.Join(r.referee.Violations(), "\n"), "double holder")
	}, browser.Limit, 10*time.Millisecond)
}

// The reports of a contender that is ended during its start do not count. A contender that starts and never begins is
// left behind.
func TestReportsOfAContenderThatEndsDuringItsStartDoNotCount(t *testing.T) {
	r := newReferee(1)
	r.enter("tab1.page.1")
	r.enter("tab2.page.2")
	r.end("tab1.")
	assert.True(t, r.hear(told{Client: "tab1.page.1", What: "error", Why: "Failed to fetch"}).Stop)
	assert.True(t, r.hear(told{Client: "tab1.page.1", What: "begin"}).Stop)
	assert.Empty(t, r.failures())
	assert.Equal(t, []string{"tab2.page.2"}, r.running())
	assert.False(t, r.hear(told{Client: "tab2.page.2", What: "begin"}).Stop)
}

// start begins a race. alone hides Web Locks from all scripts.
func start(t *testing.T, strategy string, alone, fault bool) *runner {
	number := *seed
	if number == 0 {
		number = rand.Uint64()
	}
	t.Logf("play it again with: go test ./tests/race -run '%s' -grants %d -every %v -seed %d", t.Name(), *grants, *every, number)
	limit := *grants
	if fault {
		limit = math.MaxInt // it goes on until it is found
	}
	r := &runner{t: t, browser: browser.Start(t, browser.Options{Shell: true}), referee: newReferee(limit), strategy: strategy, fault: fault,
		random: rand.New(rand.NewPCG(number, 0)), events: map[string]int{}}
	r.server = serve(t, r.referee, alone)
	for i := range r.tabs {
		r.tabs[i] = r.browser.Open(t, r.server.URL("/race"))
		r.enter(i)
	}
	return r
}

// options names a new contender of a tab and returns its instructions.
func (r *runner) options(tab int, name, host string) string {
	r.born++
	id := fmt.Sprintf("tab%d.%s.%d", tab, name, r.born)
	r.referee.enter(id)
	return fmt.Sprintf("{id: '%s', host: '%s', strategy: '%s', root: 'race', seed: %d, fault: %v}", id, host, r.strategy, r.random.Uint32(), r.fault)
}

// enter makes a loaded tab take part: its page, in one of both hosts, and its workers.
func (r *runner) enter(tab int) {
	r.tabs[tab].WaitFor("globalThis.loaded", browser.Limit)
	host := []string{"page", "worker"}[r.random.IntN(2)]
	r.tabs[tab].MustEval("contend("+r.options(tab, "page", host)+")", nil)
	for worker := range workers {
		r.replace(tab, worker)
	}
}

func (r *runner) replace(tab, worker int) {
	name := fmt.Sprintf("worker%d", worker)
	r.referee.end(fmt.Sprintf("tab%d.%s.", tab, name))
	r.tabs[tab].MustEval(fmt.Sprintf("replace(%d, %s)", worker, r.options(tab, name, "worker")), nil)
}

// strike ends a page or worker, and replaces it.
func (r *runner) strike() {
	tab := r.random.IntN(tabs)
	what := []string{"terminate", "terminate", "terminate", "reload", "close", "crash"}[r.random.IntN(6)]
	r.events[what]++
	if what == "terminate" {
		r.replace(tab, r.random.IntN(workers))
		return
	}
	r.referee.end(fmt.Sprintf("tab%d.", tab))
	switch what {
	case "reload":
		r.tabs[tab].Reload()
	case "close":
		r.tabs[tab].Close()
		r.tabs[tab] = r.browser.Open(r.t, r.server.URL("/race"))
	case "crash":
		r.tabs[tab].Crash()
		r.tabs[tab].Navigate(r.server.URL("/race"))
	}
	r.enter(tab)
}

// finish waits until every contender has ended its last turn. A contender that does not was left behind.
func (r *runner) finish() {
	r.referee.stop()
	for limit := time.Now().Add(served); len(r.referee.running()) > 0 && time.Now().Before(limit); {
		time.Sleep(10 * time.Millisecond)
	}
	for _, client := range r.referee.running() {
		r.referee.Forgotten(client)
	}
}

// free asserts that a new contender can acquire the lock, and that there is no other one.
func (r *runner) free() {
	tab := r.browser.Open(r.t, r.server.URL("/race"))
	tab.MustEval(fmt.Sprintf(`
		const { openHoldfast } = await import('/holdfast.js')
		const hf = await openHoldfast({ strategy: '%s', root: 'race' })
		await hf.ready // loading is not part of the time limit
		const lease = await hf.acquireProjectLock({ timeoutMs: 30000 })
		globalThis.state = await hf.inspect()
		await lease.release()
		await hf.close()`, r.strategy), nil)
	assert.Equal(r.t, 1, browser.Get[int](tab, "state.held.length"))
	assert.Equal(r.t, 0, browser.Get[int](tab, "state.pending.length"))
}
