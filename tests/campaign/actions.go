package campaign

import (
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// action is one action of the campaign. It affects the page with the number i.
type action struct {
	name   string
	weight int
	do     func(r *run, i int)
}

var actions = []action{
	{"closed", 4, func(r *run, i int) { r.leave(i, "closed") }},
	{"reloaded", 4, func(r *run, i int) { r.leave(i, "reloaded") }},
	{"navigated", 3, func(r *run, i int) { r.leave(i, "navigated") }},
	{"crashed", 5, func(r *run, i int) { r.leave(i, "crashed") }},
	{"back/forward cache", 3, (*run).cache},
	{"frozen", 3, (*run).freeze},
	{"torn down", 4, (*run).teardown},
	{"handover", 5, (*run).handover},
	{"forced", 2, (*run).force},
	{"stolen", 2, (*run).steal},
	{"drafts resolved", 2, (*run).resolve},
	{"browser killed", 1, func(r *run, _ int) { r.restart(syscall.SIGKILL) }},
	{"browser terminated", 1, func(r *run, _ int) { r.restart(syscall.SIGTERM) }},
	{"server killed", 1, (*run).killServer},
	{"network cut", 1, (*run).cut},
	{"localStorage full", 1, (*run).crowd},
	{"storage full", 1, (*run).fill},
	{"storage wiped", 1, (*run).wipe},
	{"at a step", 5, (*run).step},
	{"two start together", 2, (*run).together},
	{"worker hangs", 2, (*run).hang},
}

// draw returns a random action.
func (r *run) draw() action {
	var list []action // each as often as its weight
	for _, a := range actions {
		if len(r.only) == 0 || slices.Contains(r.only, a.name) {
			list = append(list, slices.Repeat([]action{a}, a.weight)...)
		}
	}
	return list[r.random.IntN(len(list))]
}

func (r *run) pause(limit time.Duration) time.Duration {
	return time.Duration(r.random.Int64N(int64(limit)))
}

// leave ends the page of a tab in one of four ways, and opens another page in its place.
func (r *run) leave(i int, how string) {
	p := r.pages[i]
	r.thaw(p)
	if how == "crashed" {
		if _, err := p.tab.Renderer(); err != nil {
			how = "reloaded"
		}
	}
	r.poll(i)
	at := clock()
	switch how {
	case "closed":
		p.tab.Close()
		r.ended(i, how, false, at)
		p.tab = r.browser.Open(r.t, r.home())
	case "reloaded":
		p.tab.Reload()
		r.ended(i, how, false, at)
	case "navigated":
		// The browser discards pages in its cache there.
		p.tab.Navigate(r.site.URL("/away"))
		r.ended(i, how, false, at)
		p.tab.Close()
		p.tab = r.browser.Open(r.t, r.home())
	case "crashed":
		p.tab.Crash()
		r.ended(i, how, true, at)
		p.tab.Navigate(r.home())
	}
	r.enter(i)
}

func (r *run) thaw(p *opened) {
	if p.frozen {
		p.tab.Resume()
		p.frozen = false
	}
}

// cache navigates a tab away and back: its page comes back to life.
func (r *run) cache(i int) {
	p := r.pages[i]
	r.thaw(p)
	r.poll(i)
	at := clock()
	p.tab.Navigate(r.site.URL("/away"))
	for _, s := range p.sessions { // the words typed before are kept, whether or not the page comes back
		r.oracle.end(s, inCache, r.crowded, at)
	}
	p.cached = true
	r.work(r.pause(time.Second))
	_ = p.tab.Eval("history.back(); null", nil)
	if err := p.tab.Wait("location.pathname === '/campaign' && globalThis.loaded", browser.Limit); err != nil {
		r.t.Fatalf("back from the cache: %v", err)
	}
	if browser.Get[int](p.tab, "sessions.size") == 0 { // the browser discarded it
		r.ended(i, "thrown away in the cache", false, at)
		r.enter(i)
		return
	}
	for _, s := range p.sessions {
		r.oracle.back(s)
	}
	p.cached = false
}

// freeze freezes a page, and resumes it or not.
func (r *run) freeze(i int) {
	p := r.pages[i]
	r.poll(i)
	p.tab.Freeze()
	p.frozen = true
	r.work(r.pause(800 * time.Millisecond))
	switch r.random.IntN(3) {
	case 0:
		r.poll(i)
		at := clock()
		p.tab.Crash()
		r.ended(i, "crashed while frozen", true, at)
		p.tab.Navigate(r.home())
		r.enter(i)
	case 1:
		r.poll(i)
		at := clock()
		p.tab.Close()
		r.ended(i, "closed while frozen", true, at)
		p.tab = r.browser.Open(r.t, r.home())
		r.enter(i)
	default:
		r.thaw(p)
	}
}

// teardown ends the AutoSaves of a page and empties the editors in the same task.
func (r *run) teardown(i int) {
	p := r.pages[i]
	r.thaw(p)
	method := []string{"dispose", "close"}[r.random.IntN(2)]
	for _, s := range p.sessions {
		if !s.began && !s.early {
			r.leave(i, "reloaded")
			return
		}
	}
	at := clock()
	err := p.tab.Eval(fmt.Sprintf("globalThis.down = Promise.all([...sessions.values()].map(session => session.teardown('%s'))); null", method), nil)
	if err != nil {
		r.oracle.accuse("teardown: %v", err)
	}
	r.poll(i) // every word was typed before the teardown
	if err := p.tab.Eval("await down; null", nil); err != nil {
		r.oracle.accuse("%s has not ended: %v", method, err)
	}
	r.ended(i, tornDown+" by "+method, false, at)
	p.tab.Reload()
	r.enter(i)
}

// other returns two pages with the same open document.
func (r *run) other(i int) (asker int, s *session, ok bool) {
	for _, mine := range r.pages[i].sessions {
		for k := range r.pages {
			for _, theirs := range r.pages[k].sessions {
				if k != i && !r.pages[k].cached && !r.pages[k].frozen && theirs.began && theirs.document == mine.document {
					return k, theirs, true
				}
			}
		}
	}
	return 0, nil, false
}

func (r *run) ask(i int, options string) (asked bool) {
	k, s, ok := r.other(i)
	if ok {
		ok = r.pages[k].tab.Eval(fmt.Sprintf("sessions.get(%q).requestEdit(%s); null", s.id, options), nil) == nil
	}
	return ok
}

// handover makes another page ask for the document. The page that hands over continues, or ends during the handover.
func (r *run) handover(i int) {
	how := []string{"", "", "closed", "reloaded", "navigated", "crashed"}[r.random.IntN(6)]
	if !r.ask(i, "{}") || how == "" {
		return
	}
	time.Sleep(r.pause(60 * time.Millisecond))
	r.leave(i, how)
}

// force makes another page take the document from a page whose process is stopped.
func (r *run) force(i int) {
	p := r.pages[i]
	r.thaw(p)
	for _, other := range r.pages {
		_, _ = other.tab.Renderer()
	}
	p.tab.Suspend()
	r.ask(i, "{force: true, graceMs: 300}")
	time.Sleep(r.pause(2 * time.Second))
	p.tab.Continue()
}

// steal steals the lock of a document from the page that edits it.
func (r *run) steal(i int) {
	if k, s, ok := r.other(i); ok && !s.document.shared {
		_ = r.pages[k].tab.Eval(fmt.Sprintf(`{ const { holdfast, options } = sessions.get(%q)
			void holdfast.acquireProjectLock({path: options.path, steal: true, timeoutMs: 5000}).then(lease => new Promise(done => setTimeout(() => done(lease.release()), 300))).catch(() => {}) }`, s.id), nil)
	}
}

// resolve makes a page take over the words of the drafts that it is shown.
func (r *run) resolve(i int) {
	for _, s := range r.pages[i].sessions {
		if s.began && !r.pages[i].frozen {
			_ = r.pages[i].tab.Eval(fmt.Sprintf("void sessions.get(%q).resolve().catch(() => {})", s.id), nil)
		}
	}
}

// restart ends the browser with a signal and starts it again. Every page ends.
func (r *run) restart(signal syscall.Signal) {
	for i := range r.pages {
		r.poll(i)
	}
	r.undoDue(time.Now().Add(time.Hour)) // while the browser still runs
	at := clock()
	r.browser.Restart(r.t, signal)
	for i := range r.pages {
		for _, s := range r.pages[i].sessions {
			s.local = false
		}
		r.ended(i, "browser "+signal.String(), true, at)
	}
	r.onlyInMemory(at)
	r.warden = r.browser.Open(r.t, r.site.URL("/away"))
	for i := range r.pages {
		r.pages[i].tab = r.browser.Open(r.t, r.home())
		r.enter(i)
	}
}

// onlyInMemory no longer requires words that were only in localStorage when the browser was killed. The journal had not
// stored them when their page ended, and no page has moved them into a file since. A page may keep words in localStorage
// before Go runs, until the journal has a worker again after a return from the cache, and after four seconds without an
// answer of that worker. Chromium keeps localStorage in memory, at first for 5 s. It writes at most 60 times and 10 MiB an
// hour, so later, and after a page has filled it, the write takes minutes.
func (r *run) onlyInMemory(at float64) {
	for s, ended := range r.ends {
		for _, w := range s.words {
			if at > ended && !w.saved && !w.home && !w.stored && !w.kept && w.required != "" && (!s.began || s.returned || s.waits || !s.due(w, journal, ended)) {
				w.required = ""
				r.oracle.count["words in localStorage alone when the browser ended"]++
			}
		}
	}
}
