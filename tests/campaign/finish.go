package campaign

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// last opens a document at the end of the run, and looks for every word until it finds each or the time for it is
// over.
func (r *run) last(tab *browser.Tab, d *document) {
	r.born++
	s := r.oracle.open(fmt.Sprintf("s%d", r.born), d.name, d.shared)
	place := r.lie[d]
	text, err := json.Marshal(map[string]any{"id": s.id, "open": place.open, "options": place.options(), "seed": 1, "pace": 100, "over": true})
	if err != nil {
		r.t.Fatal(err)
	}
	err = tab.Eval(fmt.Sprintf("await begin(%s)", text), nil)
	if err == nil {
		err = tab.Wait(fmt.Sprintf("!sessions.get(%q).saver.readOnly", s.id), 2*browser.Limit)
	}
	if err != nil {
		var log []entry
		_ = tab.Eval("take()", &log)
		r.oracle.accuse("%s cannot be edited at the end: %v; the page says %+v", d.name, err, log[max(0, len(log)-3):])
		return
	}
	p := &opened{tab: tab, sessions: []*session{s}}
	for limit := time.Now().Add(2 * patience); r.inspect(p, s, true) && r.oracle.waiting(d) && time.Now().Before(limit); {
		time.Sleep(200 * time.Millisecond)
		r.controls()
	}
	var found seen
	if err := tab.Eval(fmt.Sprintf("await sessions.get(%q).inspect(true)", s.id), &found); err != nil {
		r.oracle.accuse("%s cannot be read at the end: %v", d.name, err)
		return
	}
	r.oracle.settle(d, found, r.ends)
	r.oracle.count["drafts left at the end"] += len(found.Drafts)
	if err := tab.Eval(fmt.Sprintf("await sessions.get(%q).saver.dispose()", s.id), nil); err != nil {
		r.oracle.accuse("%s does not close at the end: %v", d.name, err)
	}
}
