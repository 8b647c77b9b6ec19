package campaign

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// look reads what documents have, while the campaign goes on.
type look struct {
	readings []*reading
	history  bool
	begun    time.Time
	done     chan struct{}
}

// reading is what one page says about documents that it has open.
type reading struct {
	tab   *browser.Tab
	asked []*session
	found map[string]seen // by the number of the session; without those that cannot be read at present
}

// begin has the pages read their documents, at the same time. The contents of shared ones come from the server itself.
func begin(readings []*reading, history bool, server string) *look {
	l := &look{readings: readings, history: history, begun: time.Now(), done: make(chan struct{})}
	var asked sync.WaitGroup
	for _, reading := range readings {
		asked.Go(func() { reading.ask(history, server) })
	}
	go func() {
		asked.Wait()
		close(l.done)
	}()
	return l
}

func (g *reading) ask(history bool, server string) {
	ids := make([]string, len(g.asked))
	for i, s := range g.asked {
		ids[i] = s.id
	}
	text, err := json.Marshal(ids)
	if err == nil {
		_ = g.tab.Eval(fmt.Sprintf("await look(%s, %v)", text, history), &g.found)
	}
	for _, s := range g.asked {
		found, ok := g.found[s.id]
		if !ok || !s.document.shared {
			continue
		}
		if found.Content, err = contentOf(server, s.document.name); err != nil {
			delete(g.found, s.id)
			continue
		}
		g.found[s.id] = found
	}
}

// lookAround goes on with the look that is under way, or begins one after a while. It waits for nothing.
func (r *run) lookAround() {
	switch {
	case r.looks == nil && time.Since(r.looked) > looking:
		r.looks = begin(r.readings(), false, r.server.URL)
	case r.looks != nil:
		select {
		case <-r.looks.done:
			more := r.judge(r.looks)
			r.looks, r.looked = nil, time.Now()
			if len(more) > 0 {
				r.looks = begin(more, true, r.server.URL)
			}
		default:
		}
	}
}

// readings are of every document that a page has open, through one of its pages each.
func (r *run) readings() (list []*reading) {
	done := map[*document]bool{}
	for _, p := range r.pages {
		if p == nil || p.cached || p.frozen || p.tab.Crashed() {
			continue
		}
		g := &reading{tab: p.tab}
		for _, s := range p.sessions {
			if s.began && !done[s.document] && r.reaches(s.document) {
				done[s.document] = true
				g.asked = append(g.asked, s)
			}
		}
		if len(g.asked) > 0 {
			list = append(list, g)
		}
	}
	return list
}

// reaches reports whether a page can know what a document has, and not only what its browser has of it.
func (r *run) reaches(d *document) bool {
	return !d.shared || !r.offline && time.Since(r.online) >= 2*serverTTL
}

// judge tells the oracle what was read. It returns what has to be read again with the history.
func (r *run) judge(l *look) (more []*reading) {
	for _, g := range l.readings {
		again := &reading{tab: g.tab}
		for _, s := range g.asked {
			found, ok := g.found[s.id]
			if !ok {
				r.oracle.count["inspections that failed"]++
				continue
			}
			r.oracle.count["inspections"]++
			r.log.seen(s, found)
			if r.oracle.inspect(s.document, found, l.history, l.begun, time.Now()) {
				again.asked = append(again.asked, s)
			}
		}
		if len(again.asked) > 0 {
			more = append(more, again)
		}
	}
	return more
}
