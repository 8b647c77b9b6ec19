package autosave

import (
	"errors"
	"slices"
)

// draftState knows which text the page shows, which part of it is a draft, and which drafts wait for a decision. Only the loop
// uses it.
type draftState struct {
	text           int64   // the number of the present text: the page gets another text when it loads a content
	lineage        string  // of the present text: the ID of its drafts; "" if it is unknown
	own            *Draft  // of the present text: sealed, and not saved since
	ownMarks       int64   // number of changes when own was sealed
	unsaved        unsaved // what this page could not save and offers to the user
	waiting        []Draft // drafts that wait for a decision, as far as this page knows
	revision       int64   // rises with each change of the drafts that this page knows: a list that was begun before is out of date
	storing        int     // how often the page is storing its text as a draft right now: no list contains it meanwhile
	awaitsLateMark bool    // nothing of the text is unsaved, but the report of an earlier change may still come
}

// unsaved is the text of this page at the time when it could no longer save.
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
	d.revision++
}

// contained forgets the drafts that a generation contains. If one of them is the draft of the present text, it returns that draft, which the
// caller removes.
func (d *draftState) contained(g Generation) (remove *Draft) {
	before := len(d.waiting)
	if d.waiting = without(d.waiting, g.contains); len(d.waiting) < before {
		d.revision++
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

// setWaiting records the drafts that wait for a decision and returns the new ones.
func (d *draftState) setWaiting(waiting []Draft) (fresh []Draft) {
	for _, w := range waiting {
		if !slices.ContainsFunc(d.waiting, func(known Draft) bool { return known.ID == w.ID && known.Number >= w.Number }) {
			fresh = append(fresh, w)
		}
	}
	d.waiting = waiting
	return fresh
}

// leaveCause returns the cause of the draft that a page leaves when it ends. failed is the error of the last attempt to save. Without an
// error, a draft that was sealed before keeps its cause.
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
