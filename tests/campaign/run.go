// Package campaign ends pages, browsers and servers in every way while text is typed, and checks whether a word is
// lost. It knows from outside the browser which words were typed and acknowledged.
package campaign

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/tests/browser"
	"github.com/holdfast-dev/holdfast/tests/serving"
)

const (
	tabs      = 4
	perPage   = 6 // sessions
	journal   = 200 * time.Millisecond
	patience  = 20 * time.Second
	serverTTL = 3 * time.Second
)

var generations = flag.Int("generations", 0, "of each document; 0: as many as by default. With 1, no history hides that a text is overwritten")

// run is one campaign.
type run struct {
	t       *testing.T
	seed    uint64
	random  *rand.Rand
	browser *browser.Browser
	site    *browser.Server
	net     *network
	server  *serving.Server
	wire    *serving.Wire
	oracle  *oracle
	log     *record
	warden  *browser.Tab // no fault happens to it
	pages   [tabs]*opened
	ends    map[*session]float64
	lie     map[*document]place
	born    int
	endings int // of sessions
	begun   time.Time
	looked  time.Time
	crowded bool      // localStorage is full
	scarce  bool      // OPFS is full
	offline bool      // the server is unreachable
	online  time.Time // the time since when it is reachable again
	undo    []undo
	only    []string // the allowed actions; none allows all
	plan    plan     // of the next page
	folders int      // of pages with a delivery of their own
	former  string   // the folder of an older build, which some pages use; "": none
}

// undo ends a fault that lasts for a while.
type undo struct {
	kind string
	at   time.Time
	do   func()
}

// opened is a page with its open sessions.
type opened struct {
	tab      *browser.Tab
	sessions []*session
	cached   bool // the page is in the back/forward cache, behind another page of its tab
	frozen   bool
	stopped  bool   // the page waits at a step, and answers nothing
	leaves   func() // ends its downloads
}

func clock() float64 { return float64(time.Now().UnixMicro()) / 1000 }

// home is the address of a page.
func (r *run) home() string {
	if r.former != "" && r.random.IntN(3) == 0 {
		return r.site.URL("/campaign?before")
	}
	return r.site.URL("/campaign")
}

// place is the location of a document: a project, and a path in it.
type place struct {
	open map[string]any // the options of a Holdfast
	path []string
}

func (p place) shared() bool { return p.open["server"] != nil }

// name is the document's name on the server.
func (p place) name() string {
	return strings.Join(append([]string{p.open["root"].(string)}, p.path...), "/")
}

// options returns the AutoSave options for the document.
func (p place) options() map[string]any {
	options := map[string]any{"path": p.path}
	if p.shared() {
		options["lock"] = map[string]any{"ttlMs": serverTTL.Milliseconds(), "heartbeatIntervalMs": serverTTL.Milliseconds() / 5,
			"backoff": map[string]any{"initialDelayMs": 200, "maxDelayMs": 500, "maxRetries": 0}}
	}
	return options
}

// places returns the places of a page. They belong to this chapter, so that no document grows forever. All pages of a
// chapter use the same places, except some pages that use others.
func (r *run) places(begins plan) (list []place) {
	chapter := r.endings / 200
	kind := chapter
	if r.random.IntN(5) == 0 {
		kind = r.random.IntN(3)
	}
	host := []string{"worker", "page"}[r.random.IntN(2)]
	for n := range perPage {
		var p place
		switch kind % 3 {
		case 0:
			p = place{map[string]any{"root": fmt.Sprintf("web-%d", chapter), "strategy": "web-lock"}, []string{"book", fmt.Sprint(n)}}
		case 1:
			p = place{map[string]any{"root": fmt.Sprintf("file-%d", chapter), "strategy": "file-lock"}, []string{fmt.Sprint(n)}}
		case 2:
			p = place{map[string]any{"root": fmt.Sprintf("shared-%d-%d", chapter, n), "server": map[string]any{"url": r.site.URL("")}}, []string{}}
		}
		if begins.early {
			p = place{map[string]any{"root": fmt.Sprintf("early-%d-%d", chapter, begins.variant)}, []string{fmt.Sprint(n)}}
		}
		p.open["host"] = host
		list = append(list, p)
	}
	return list
}

// enter makes the page of a tab open documents and type. The page has been loaded.
func (r *run) enter(i int) {
	p := r.pages[i]
	p.sessions, p.cached, p.frozen, p.stopped = nil, false, false, false
	p.leaves()
	if err := p.tab.Wait("globalThis.loaded", browser.Limit); err != nil {
		if !p.tab.Crashed() {
			r.t.Fatalf("a page of the campaign does not load: %v", err)
		}
		p.tab.Navigate(r.home())
		r.enter(i)
		return
	}
	_, _ = p.tab.Renderer() // makes its process known before it is killed
	begins, folder := r.draws(), ""
	if begins.early {
		folder = r.delivers(p, begins)
	}
	_ = p.tab.Eval(fmt.Sprintf("globalThis.stopAt = %d; null", begins.stopAt), nil)
	for _, place := range r.places(begins) {
		r.born++
		s := r.oracle.open(fmt.Sprintf("s%d", r.born), place.name(), place.shared())
		s.excused = r.scarce
		r.lie[s.document] = place
		options := place.options()
		if *generations > 0 {
			options["maxGenerations"] = *generations
		}
		open := maps.Clone(place.open)
		open["ownerName"] = s.id
		if folder != "" {
			open["baseURL"] = folder
		}
		options["debounceMs"], options["idleMs"], options["journalMs"] = 50+r.random.IntN(2000), 5000, journal.Milliseconds()
		text, err := json.Marshal(map[string]any{"id": s.id, "open": open, "options": options, "seed": r.random.Uint32(), "at": begins.at,
			"pace": 30 + r.random.IntN(300), "merges": r.random.IntN(2) == 0, "stubborn": r.random.IntN(6) == 0})
		if err != nil {
			r.t.Fatal(err)
		}
		p.sessions = append(p.sessions, s)
		r.log.line(clock(), "%s opens %s in page %d: %s", s.id, s.document.name, i, text)
		if err := p.tab.Eval("void begin("+string(text)+")", nil); err != nil {
			r.oracle.accuse("a session does not begin: %v", err)
		}
	}
}

// poll reads the lines that the page of a tab has recorded.
func (r *run) poll(i int) {
	p := r.pages[i]
	if p == nil || p.cached || p.stopped {
		return
	}
	var entries []entry
	if err := p.tab.Eval("globalThis.take?.() ?? []", &entries); err != nil {
		return // it has crashed or is about to
	}
	for _, e := range entries {
		r.log.entry(r.oracle, e)
		r.oracle.heard(p.sessions, e)
	}
}

// ended records how and when a page ended.
func (r *run) ended(i int, how string, abrupt bool, at float64) {
	r.log.line(at, "page %d with %v ended: %s", i, names(r.pages[i].sessions), how)
	for _, s := range r.pages[i].sessions {
		s.local = s.local && !r.crowded
		r.oracle.end(s, how, abrupt || r.crowded, at)
		r.ends[s] = at
		r.endings++
	}
	r.pages[i].sessions = nil
}

// work lets the pages type for a while, and inspects the documents.
func (r *run) work(pause time.Duration) {
	for end := time.Now().Add(pause); ; time.Sleep(20 * time.Millisecond) {
		for i := range r.pages {
			r.poll(i)
		}
		r.undoDue(time.Now())
		if time.Since(r.looked) > time.Second {
			r.controls()
			r.inspectAll(false)
			r.looked = time.Now()
		}
		if time.Now().After(end) {
			return
		}
	}
}

// undoDue ends the faults that have lasted long enough.
func (r *run) undoDue(now time.Time) {
	r.undo = slices.DeleteFunc(r.undo, func(u undo) bool {
		if now.Before(u.at) {
			return false
		}
		u.do()
		return true
	})
}

// controls reads, in a page that does not end, which ends the browser announced to their pages.
func (r *run) controls() {
	sessions := browser.Get[[]string](r.warden, `const keys = Object.keys(localStorage).filter(key => key.startsWith('announced:'))
		for (const key of keys) localStorage.removeItem(key)
		keys.map(key => key.slice('announced:'.length))`)
	for _, id := range sessions {
		e := entry{What: "announced", Session: id, At: clock()}
		r.log.entry(r.oracle, e)
		r.oracle.heard(nil, e)
	}
}

// inspectAll inspects every document that a page has open.
func (r *run) inspectAll(all bool) {
	done := map[*document]bool{}
	for _, p := range r.pages {
		if p == nil || p.cached || p.frozen || p.stopped || p.tab.Crashed() {
			continue
		}
		for _, s := range p.sessions {
			if s.began && !done[s.document] {
				done[s.document] = r.inspect(p, s, all)
			}
		}
	}
}

// inspect inspects a document through a session. It returns false if that was not possible.
func (r *run) inspect(p *opened, s *session, history bool) bool {
	if s.document.shared && (r.offline || time.Since(r.online) < 2*serverTTL) {
		return false // the page may know only what this browser has stored
	}
	var found seen
	if err := p.tab.Eval(fmt.Sprintf("await sessions.get(%q).inspect(%v)", s.id, history), &found); err != nil {
		r.oracle.count["inspections that failed"]++
		if errors.Is(err, browser.ErrNoAnswer) {
			r.oracle.accuse("%s: a call of %s does not settle: %v", s.document.name, s.id, err)
		}
		return false
	}
	if s.document.shared {
		content, err := contentOf(r.server.URL, s.document.name)
		if err != nil {
			return false
		}
		found.Content = content
	}
	r.oracle.count["inspections"]++
	r.log.seen(s, found)
	if r.oracle.inspect(s.document, found, history, time.Now()) {
		return r.inspect(p, s, true)
	}
	return true
}
