package simulation

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/remote"
)

// run is one simulated run: a world with its origins and programs, and their faults.
type run struct {
	w       *world
	plan    plan
	checker *checker
	service *service // nil without one
	origins []*origin
	words   *words
	ended   chan struct{} // closed when all programs have ended
	calmed  chan struct{} // closed when no further fault begins and no program acquires another lease

	programs sync.WaitGroup
	faults   sync.WaitGroup // that last for a while
	side     sync.WaitGroup // the tasks that look at leases of editors

	mu       sync.Mutex
	opened   int
	managers map[*tab]*lock.Manager
}

// Result is the result of a run.
type Result struct {
	Seed     uint64
	Findings []string
	Trace    []string // the last steps
	Counts   map[string]int
}

// Run simulates one run. With verbose it records every request. It must be called in a bubble of testing/synctest,
// and leaves no goroutine there.
func Run(seed uint64, verbose bool) Result {
	w := newWorld(seed)
	w.verbose = verbose
	r := &run{w: w, plan: newPlan(w.dice("plan")), checker: newChecker(w), words: newWords(w), ended: make(chan struct{}), calmed: make(chan struct{}), managers: make(map[*tab]*lock.Manager)}
	w.takenFrom = r.checker.takenFrom
	r.words.remote, r.words.small, r.words.merging = r.plan.remote, r.plan.history.MaxGenerations < 1000, r.plan.merges > 0
	w.note("run", "plan %+v", r.plan)
	r.build()
	stop := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() { r.checker.watch(r.origins, stop) })
	r.faults.Go(r.trouble)
	time.Sleep(r.plan.lasts)
	r.end()
	close(stop)
	watching.Wait()
	return Result{Seed: seed, Findings: w.findings, Trace: w.trace, Counts: w.counts}
}

func (r *run) build() {
	d := r.w.dice("build")
	var urls []string
	for i := range r.plan.origins {
		urls = append(urls, fmt.Sprintf("http://localhost:%d", 8080+i)) // one host: they share the cookies
	}
	if r.plan.remote {
		r.service = newService(r.w, r.plan.instances, urls)
		r.checker.service, r.checker.mixed = r.service, r.plan.mixed
	}
	for i := range r.plan.browsers {
		name := fmt.Sprintf("browser%d", i)
		b := &browser{w: r.w, name: name, dice: r.w.dice(name), service: r.service}
		clock := &machineClock{w: r.w, drift: (2*d.random.Float64() - 1) / 1000}
		for j, url := range urls {
			at := newOrigin(r.w, fmt.Sprintf("%s.%d", name, j), url, b, clock)
			at.bare = r.plan.bare
			r.origins = append(r.origins, at)
			r.checker.held[at] = ""
			for range r.plan.tabs {
				r.open(at)
			}
		}
	}
}

// open opens a tab with its programs.
func (r *run) open(at *origin) {
	r.mu.Lock()
	r.opened++
	t := at.open(fmt.Sprintf("%s.tab%d", at.name, r.opened))
	r.mu.Unlock()
	file := t.dice.chance(0.3)
	backend, domain := at.backend(t, file), at.name
	var document *remote.Document
	if r.plan.remote && !(r.plan.mixed && t.dice.chance(0.4)) {
		domain = "server"
		document = remote.NewDocument(remote.Config{Server: &wire{r, t, at.browser}, URL: serverURL, Document: "project", Name: t.name, Browser: strings.ReplaceAll(at.name, ".", "-"), Local: backend})
		backend = document.Backend()
	}
	m, err := lock.NewManager(lock.Config{OwnerID: t.name, OwnerName: t.name, Clock: t,
		Channel: &channel[lock.Message]{at.lockMessages, t}, Backends: []lock.Backend{backend}})
	if err != nil {
		r.w.found("simulation", "no manager: %v", err)
		return
	}
	r.w.note(t.name, "opens; file: %v", file)
	r.mu.Lock()
	r.managers[t] = m
	r.mu.Unlock()
	if r.plan.editors && r.plan.remote == (document != nil) {
		r.edit(t, m, document, domain)
		if !r.plan.beside || t.dice.chance(0.4) {
			return
		}
	}
	for i := range r.plan.programs {
		p := &program{run: r, tab: t, dice: r.w.dice(fmt.Sprintf("%s.%d", t.name, i)), m: m, domain: domain, remote: document != nil}
		r.programs.Go(p.work)
	}
}

// edit opens an editor in a tab.
func (r *run) edit(t *tab, m *lock.Manager, document *remote.Document, domain string) {
	var store autosave.Store = autosave.NewLayout(files(t), autosavetest.SHA256)
	var edits autosave.Channel = &channel[autosave.Message]{t.at.editMessages, t}
	if document != nil {
		store, _ = remote.NewContents(document, store, autosavetest.SHA256).At(r.plan.path)
		edits, _ = remote.NewChannel(document, edits).At(r.plan.path)
	}
	e := &editor{run: r, tab: t, dice: r.w.dice(t.name + ".editor"), m: m, remote: document != nil, domain: domain, channel: edits, pageDrafts: t.at.shelf.PageDrafts(nil)}
	t.end = e.pageDrafts.End
	r.programs.Go(func() {
		if err := e.open(store); err != nil {
			r.w.note(t.name, "cannot open: %v", err)
			return
		}
		e.work()
		if !t.gone() {
			e.call("disposing", time.Minute, e.saver.Dispose)
		} else {
			_ = e.saver.Dispose(context.Background())
		}
	})
}

// pause waits. It returns false if the run has calmed down by then.
func (r *run) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return !r.calm()
	case <-r.calmed:
		return false
	}
}

// calm reports whether the run has calmed down.
func (r *run) calm() bool {
	select {
	case <-r.calmed:
		return true
	default:
		return false
	}
}

// settleLimit is the maximum time for everything to settle after the faults are over: the longest time limit of a
// call after a takeover from each tab.
const settleLimit = 30 * time.Minute

// end lets everything end without faults, and checks what remains.
func (r *run) end() {
	r.w.note("run", "calms down")
	close(r.calmed)
	r.faults.Wait() // all tabs are awake, and storage works
	r.settle("programs", &r.programs)
	close(r.ended)
	r.side.Wait()
	var closing sync.WaitGroup
	for t, m := range r.managers {
		closing.Go(func() {
			r.checker.call(t, "closing", slack, func(ctx context.Context) { _ = m.Close(ctx) })
		})
	}
	r.settle("managers", &closing)
	r.leftovers()
	if r.plan.editors {
		r.lookAtTexts()
	}
	for _, at := range r.origins {
		for _, t := range at.others(nil) {
			t.crash()
		}
	}
	for _, at := range r.origins {
		at.browser.traffic.Wait()
	}
	if r.service != nil {
		r.service.close()
	}
}

// settle waits for a group, but not forever.
func (r *run) settle(what string, group *sync.WaitGroup) {
	done := make(chan struct{})
	go func() { group.Wait(); close(done) }()
	limit := time.NewTimer(settleLimit)
	defer limit.Stop()
	select {
	case <-done:
	case <-limit.C:
		r.w.found("settled", "%s do not come to an end", what)
	}
}

// leftovers looks for what nobody has and is still there, a TTL and a second after everything was closed and the last request,
// which may be a copy that the network made, has arrived. An instance counts a TTL from when the store delivered the
// heartbeat, so the TTL begins after the last delivery that was stalled.
func (r *run) leftovers() {
	for _, at := range r.origins {
		r.settle("requests", &at.browser.traffic)
	}
	if r.service != nil {
		r.settle("requests to the store", &r.service.stalled)
	}
	time.Sleep(lock.DefaultTTL + time.Second)
	if r.service != nil {
		if left := r.service.left(); len(left) > 0 {
			r.w.found("leftover", "the server keeps %v", left)
		}
	}
	for _, at := range r.origins {
		if held := at.held(); held != "" {
			r.w.found("leftover", "%s: locks that nobody has: %s", at.name, held)
		}
		if left := at.records.writtenSince(time.Now().Add(-lock.DefaultTTL - time.Second)); len(left) > 0 {
			r.w.found("leftover", "%s: records that are written though everything is closed: %v", at.name, left)
		}
	}
}
