package soak

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
	"github.com/holdfast-dev/holdfast/tests/serving"
)

var (
	length = flag.Duration("for", 8*time.Second, "how long the programs run")
	pace   = flag.Duration("pace", 700*time.Millisecond, "how long after a fault the next one comes, on average")
	seed   = flag.Uint64("seed", 0, "of all that is drawn, to have the same faults again; 0 draws one")
	output = flag.String("report", "../../.cache/soak.md", "file for the report")
)

// run is one soak run.
type run struct {
	t       *testing.T
	seed    uint64
	random  *rand.Rand
	planted bool // programs break promises
	browser *browser.Browser
	site    *site
	checker *checker
	servers [machines]*serving.Server
	ways    [machines]*serving.Wire // from the pages of a machine to its server
	store   *serving.Wire           // from the second server to the store of the first
	tabs    [tabs]*browser.Tab
	wardens [machines]*browser.Tab // no fault happens to these
	closed  []*browser.Tab
	born    int
	faults  map[string]int
	lasting []lasting
}

// For all faults of tabs, machines and servers: no two hold the same lock, no acknowledged save is lost, and nobody
// waits forever.
func TestSoak(t *testing.T) {
	r := start(t, false)
	defer func() { // also after an earlier failure
		report := r.report(r.checker.now())
		t.Log("\n" + report)
		assert.NoError(t, write(*output, report))
	}()
	for _, f := range schedule(r.seed, *length, *pace) {
		r.work(f.At)
		r.strike(f)
	}
	r.work(*length)
	for more := *length; !r.checker.counted(10, 1) && more < *length+patience; more += time.Second {
		r.work(more) // on a slow machine a short run has too few results
	}
	r.finish()
	assert.Empty(t, r.checker.found())
	assert.True(t, r.checker.counted(10, 1), "too few operations were done")
}

// The checker detects what it is for: a lock that grants to several, a lost save, and a token that still counts.
func TestSoakFindsWhatIsPlanted(t *testing.T) {
	r := start(t, true)
	found := func(what string) func() bool {
		return func() bool { return strings.Contains(strings.Join(r.checker.found(), "\n"), what) }
	}
	require.Eventually(t, found("double holder of web-lock"), patience, 10*time.Millisecond)
	require.Eventually(t, found("whose time was over"), patience, 10*time.Millisecond)
	require.Eventually(t, func() bool { return r.checker.counted(0, 10) }, patience, 10*time.Millisecond)
	r.finish()
	t.Log(r.report(r.checker.now()))
	require.True(t, found("saved lines")())
}

func start(t *testing.T, planted bool) *run {
	number := *seed
	if number == 0 {
		number = rand.Uint64N(1_000_000)
	}
	t.Logf("to repeat this run: make soak SOAK=%v SEED=%d", *length, number)
	r := &run{t: t, seed: number, random: rand.New(rand.NewPCG(number, 2)), planted: planted, faults: map[string]int{}}
	dir := t.TempDir()
	flags := []string{"--lock-ttl", ttl.String(), "--rate", "0", "--new-rate", "0", "--address-rate", "0", "--host", "*", "--log-level", "error"}
	r.servers[0] = serving.Run(t, append([]string{"--data-dir", dir}, flags...)...)
	r.store = serving.NewWire(t, "unix", filepath.Join(dir, "etcd.sock"))
	r.servers[1] = serving.Run(t, append([]string{"--etcd", r.store.Address(), "--blobs", filepath.Join(dir, "blobs")}, flags...)...)
	for i, server := range r.servers {
		r.ways[i] = serving.NewWire(t, "tcp", server.Address())
	}
	r.checker = newChecker()
	r.site = newSite(t, r.ways, r.checker)
	r.browser = browser.Start(t, browser.Options{})
	t.Cleanup(func() { r.endLasting(func(lasting) bool { return true }) })
	for i := range r.wardens {
		r.wardens[i] = r.browser.Open(t, r.site.address(i, "/away"))
	}
	r.checker.begun = time.Now()
	done := make(chan struct{})
	t.Cleanup(func() { close(done) })
	go r.checker.watchClock(done)
	for i := range r.tabs {
		r.tabs[i] = r.browser.Open(t, r.home(i))
		r.enter(i)
	}
	return r
}

func (r *run) home(tab int) string { return r.site.address(tab%machines, "/soak") }

// options are the start options of a program.
type options struct {
	ID       string         `json:"id"`
	Open     map[string]any `json:"open"`
	Wide     bool           `json:"wide"`   // all kinds of leases, not only of the project
	Steals   bool           `json:"steals"` // some of them are stolen
	Document string         `json:"document"`
	Timing   map[string]any `json:"timing"`
	Seed     uint32         `json:"seed"`
	Fault    bool           `json:"fault"`
}

// enter makes a loaded tab do its work.
func (r *run) enter(tab int) {
	r.tabs[tab].WaitFor("globalThis.loaded", browser.Limit)
	machine := tab % machines
	local, server := fmt.Sprintf(" of machine %d", machine), map[string]any{"url": r.site.address(machine, "")}
	here, shared := documents(r.chapter())
	r.begin(tab, "lease", "web-lock"+local, options{Open: map[string]any{"root": "web", "strategy": "web-lock"}, Wide: true, Steals: true})
	r.begin(tab, "lease", onServer, options{Open: map[string]any{"root": "leases", "server": server}})
	r.worker(tab)
	if r.random.IntN(2) == 0 {
		r.begin(tab, "edit", "document", options{Open: map[string]any{"root": here}, Document: here + local})
	} else {
		r.begin(tab, "edit", "document", options{Open: map[string]any{"root": shared, "server": server}, Document: shared})
	}
}

// chapter returns the number of the current documents, so that no document grows forever.
func (r *run) chapter() int { return int(r.checker.now() / (3 * time.Minute)) }

// documents returns the names of a chapter's documents: those kept in the browser and on the server.
func documents(chapter int) (here, shared string) {
	return fmt.Sprint("local document ", chapter), fmt.Sprint("shared-document-", chapter)
}

// worker makes a worker of a tab acquire leases over files, and replaces the previous worker.
func (r *run) worker(tab int) {
	r.checker.end(r.prefix(tab) + "worker.")
	r.begin(tab, "worker", fmt.Sprintf("file-lock of machine %d", tab%machines),
		options{Open: map[string]any{"root": "files", "strategy": "file-lock"}, Wide: true, Steals: true})
}

func (r *run) prefix(tab int) string { return fmt.Sprintf("m%d.t%d.", tab%machines, tab) }

func (r *run) begin(tab int, kind, domain string, o options) {
	r.born++
	o.ID = fmt.Sprintf("%s%s.%d", r.prefix(tab), kind, r.born)
	o.Open["host"] = []string{"page", "worker"}[r.random.IntN(2)]
	o.Timing = map[string]any{"ttlMs": ttl.Milliseconds(), "heartbeatIntervalMs": ttl.Milliseconds() / 4, "timeoutMs": (2 * patience).Milliseconds()}
	o.Seed, o.Fault = r.random.Uint32(), r.planted
	text, err := json.Marshal(o)
	require.NoError(r.t, err)
	r.checker.enter(o.ID, domain)
	r.tabs[tab].MustEval(fmt.Sprintf("begin(%q, %s); null", kind, text), nil)
}

// work lets everybody work until an instant of the run.
func (r *run) work(until time.Duration) {
	for now := r.checker.now(); now < until; now = r.checker.now() {
		time.Sleep(min(until-now, 50*time.Millisecond))
		r.endLasting(func(l lasting) bool { return time.Now().After(l.end) })
		r.revive()
		r.checker.look()
	}
}
