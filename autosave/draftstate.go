package autosave

import (
	"errors"
	"slices"
)

// draftState knows which text the page shows, which part of it is a draft, and which drafts wait for a decision. The goroutine that
// owns the state of the Saver uses it alone.
type draftState struct {
	text     int64  // counts the texts that the page was given
	lineage  string // of the present text; "" if it is unknown
	own      *Draft // of the present text: sealed, and not saved since
	ownMarks int64  // number of changes when own was sealed
	unsaved  unsaved
	waiting  []Draft // drafts that wait for a decision, as far as this page knows
	news     int64   // counts what this page learnt of them: a list that began before is out of date
	settled  bool    // nothing of the text is unsaved, but a mark of it may come late
}

// unsaved is the text of this page when it could no longer save.
type unsaved struct {
	text   []byte // nil if there is none, or if the page could not return it
	marked int64  // the number of marks that it includes
	draft  *Draft // the stored draft; nil if the text exists in memory only
}

// replaced records that the page gets another text. Text that it types from now on is a new lineage, and everything
// before is saved or a draft.
func (d *draftState) replaced() {
	d.text++
	d.lineage, d.own = "", nil
}

// sealed records that a text of the page is a draft now, with that number of changes.
func (d *draftState) sealed(draft Draft, text, marks int64) {
	if d.text == text {
		d.lineage, d.own, d.ownMarks = draft.ID, &draft, marks
	}
	d.waiting = append([]Draft{draft}, without(d.waiting, func(w Draft) bool { return w.ID == draft.ID })...)
	d.news++
}

// contained forgets the drafts that a generation contains. It returns the draft of this page that is to be removed, if this page has
// sealed it and gone on.
func (d *draftState) contained(g Generation) (remove *Draft) {
	before := len(d.waiting)
	if d.waiting = without(d.waiting, g.contains); len(d.waiting) < before {
		d.news++
	}
	if u := d.unsaved.draft; u != nil && g.contains(*u) {
		d.unsaved = unsaved{marked: d.unsaved.marked}
	}
	if own := d.own; own != nil && g.contains(*own) {
		d.own = nil
		return own
	}
	return nil
}

// wait records the drafts that wait for a decision and returns the new ones.
func (d *draftState) wait(waiting []Draft) (fresh []Draft) {
	for _, w := range waiting {
		if !slices.ContainsFunc(d.waiting, func(known Draft) bool { return known.ID == w.ID && known.Number >= w.Number }) {
			fresh = append(fresh, w)
		}
	}
	d.waiting = waiting
	return fresh
}

// leaveCause returns the reason why a page that ends leaves a draft behind. A draft that was sealed before keeps its
// cause.
func (d *draftState) leaveCause(failed error, offline bool) Cause {
	for _, w := range d.waiting {
		if w.ID == d.lineage && failed == nil {
			return w.Cause
		}
	}
	switch {
	case failed == nil:
		return CauseClosed
	case offline:
		return CauseOffline
	case errors.Is(failed, ErrStaleToken), errors.Is(failed, ErrReadOnly):
		return CauseLockLost
	}
	return CauseSaveFailed
}

// without returns the drafts for which leaveOut returns false.
func without(drafts []Draft, leaveOut func(Draft) bool) []Draft {
	rest := drafts[:0:0]
	for _, d := range drafts {
		if !leaveOut(d) {
			rest = append(rest, d)
		}
	}
	return rest
}
