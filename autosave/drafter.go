package autosave

import (
	"cmp"
	"context"
	"errors"
	"slices"
)

// drafter makes a draft of the text that this page cannot save, and follows the decisions about the drafts of all pages. The loop calls its
// methods. Those that wait for a port (removeDraft, reading, waitingDrafts, listDrafts, keepLoss, keepLast) run on other goroutines.
type drafter struct {
	status
	decisions *decisions
	reads     chan struct{} // capacity: the calls that may read at once
}

// sealed records that a text of this page was stored as a draft, unless the content contains it by now. The given number says
// which text that was: the page may show another text.
func (dr *drafter) sealed(d Draft, text int64, content *Generation) {
	if content != nil && content.contains(d) {
		return
	}
	dr.drafts.sealed(d, text, dr.changes.count())
	dr.emit(Event{Type: EventDraft, Draft: &d})
}

// saved records a generation that this page has written. A page that may not write is asked whether its later changes are in it.
func (dr *drafter) saved(w *write, g Generation) {
	dr.newest, dr.success = &g, dr.config.Clock.Now().Wall
	if w.restore == nil {
		dr.drafts.lineage = cmp.Or(g.Draft, dr.drafts.lineage)
	}
	dr.contained(g)
	dr.emit(Event{Type: EventSaved, Generation: &g})
	dr.reconsider()
}

// loadedOwn records what a loader has done with the unsaved text of this page: it is a draft, or part of the content.
func (dr *drafter) loadedOwn(found loaded) {
	if d := found.unsaved.draft; d != nil && dr.drafts.unsaved.draft != d {
		dr.sealed(*d, dr.drafts.text, found.newest)
	}
	if found.unsaved.marked > dr.drafts.unsaved.marked {
		dr.drafts.unsaved = found.unsaved
	}
	if g := found.own; g != nil {
		if dr.changes.count() == found.marked {
			dr.changes.forget()
		}
		dr.saved(&write{}, *g)
	}
	if d := dr.drafts.unsaved.draft; d != nil && found.draftsKnown && !slices.ContainsFunc(found.waiting, func(w Draft) bool { return w.ID == d.ID }) {
		dr.drafts.unsaved = unsaved{marked: dr.drafts.unsaved.marked} // it was merged, or it is the content
	}
}

// clean records that w has saved its changes, although its role ended before: until now, this page took them for unsaved. If the user has
// typed since, the page is still dirty and keeps its unsaved text.
func (dr *drafter) clean(w *write) {
	dr.changes.forgetKept(w.since)
	if dr.changes.count() != w.marks {
		dr.changes.keep(dr.changes.now())
	} else {
		dr.drafts.awaitsLateMark, dr.drafts.unsaved = true, unsaved{marked: w.marks} // keepLoss may still run
	}
}

// tellDrafts emits events for drafts that were found, and for conflicts.
func (dr *drafter) tellDrafts(fresh []Draft, sides []Conflict) {
	for _, d := range fresh {
		dr.emit(Event{Type: EventDraft, Draft: &d})
	}
	for _, c := range sides {
		dr.emit(Event{Type: EventConflict, Conflict: &c})
	}
}

// contained forgets the drafts that a generation contains. It removes the draft of this page's text, if that is one of them.
func (dr *drafter) contained(g Generation) {
	if d := dr.drafts.contained(g); d != nil {
		dr.work.Go(func() {
			ctx, stop := context.WithTimeout(dr.life, answerLimit)
			defer stop()
			_ = dr.config.Drafts.Remove(ctx, d.ID, g.Number) // if this fails, the next editor removes it
		})
	}
}

// resolved forgets a draft after a decision. A page that still shows the text, with nothing typed since, does not make
// a draft of it again. It loads the content before it edits.
func (dr *drafter) resolved(id string, number int64) {
	g := Generation{Draft: id, Number: number}
	own, marks := dr.drafts.contained(g), dr.changes.count()
	if own != nil && dr.role == viewing && marks == dr.drafts.unsaved.marked {
		dr.changes.forget()
		dr.newest, dr.drafts.lineage, dr.drafts.awaitsLateMark = nil, "", true
	}
	dr.events.tell(Event{Type: EventPhase, State: dr.state(), Generation: &g})
	dr.reconsider()
}

// refreshDrafts asks which drafts still wait for a decision, because another page may have decided about some.
func (dr *drafter) refreshDrafts() {
	dr.drafts.revision++ // for a list or a load that is under way
	if len(dr.drafts.waiting) == 0 && dr.drafts.own == nil {
		return
	}
	dr.work.Go(func() {
		ctx, stop := context.WithTimeout(dr.life, 2*answerLimit)
		defer stop()
		_, _ = dr.listWaiting(ctx, true) // a user who asks for the drafts gets the error
	})
}

// savedElsewhere looks for drafts that another page has saved. If one of them is the text that this page shows, this page counts it as saved
// and does not make the draft again. If that text was merged, the content is another text than the one that this page shows.
func (dr *drafter) savedElsewhere(all []Generation) {
	for _, g := range all {
		if d := dr.drafts.own; d != nil && g.Draft == d.ID && g.Token == dr.lease.Token {
			continue // a commit of this page, which may still be refused
		}
		if d := dr.drafts.own; d != nil && dr.role == viewing && g.Draft == d.ID && g.Number >= d.Number {
			w := write{since: dr.changes.since.Load(), marks: dr.drafts.ownMarks}
			dr.clean(&w)
			dr.saved(&w, g)
		} else if d != nil && g.contains(*d) {
			dr.resolved(d.ID, g.Number)
		}
		for _, d := range dr.drafts.waiting {
			if g.contains(d) {
				dr.resolved(d.ID, g.Number)
			}
		}
	}
}

// removeDraft removes a draft after a decision. It fails with ErrNotFound if the user discards a draft that this page makes the content.
func (dr *drafter) removeDraft(ctx context.Context, d Draft, as Resolution) error {
	remove := func(how func(context.Context, Draft) error) error {
		if err := how(ctx, d); err != nil {
			return asError(err, CodeWriteFailed, "the draft could not be removed")
		}
		return nil
	}
	if as != AsDiscard {
		_ = remove(dr.config.removeDraft) // it is saved: if this fails, the next editor removes it
		return nil
	}
	decided, err := dr.decisions.decide(ctx, d, AsDiscard, func() error { return remove(dr.config.discardDraft) })
	if err == nil && decided == AsContent {
		return noDraft(d.ID)
	}
	return err
}

// reading begins a call that reads: it sets the deadline of the call and waits for its turn. The caller calls end when it has read. Only a few
// calls read at once, so that a page that asks again and again does not keep its own saves from the storage.
func (dr *drafter) reading(ctx context.Context) (_ context.Context, end func(), err error) {
	if dr.config.Disabled {
		return ctx, func() {}, ErrDisabled
	}
	ctx, stop := bounded(ctx)
	select {
	case dr.reads <- struct{}{}:
		return ctx, func() { <-dr.reads; stop() }, nil
	case <-ctx.Done():
		if err = context.Cause(ctx); errors.Is(err, context.DeadlineExceeded) {
			err = &Error{Code: CodeReadFailed, Detail: "this page has asked for more than the storage can read in time; wait for an answer before you ask again", Err: err}
		}
		return ctx, stop, err
	}
}

// waitingDrafts returns the drafts of this document that wait for a decision, the newest first.
func (dr *drafter) waitingDrafts(ctx context.Context) ([]Draft, error) {
	if dr.config.Disabled {
		return nil, ErrDisabled
	}
	if dr.config.Drafts == nil {
		return nil, nil
	}
	ctx, end, err := dr.reading(ctx)
	defer end()
	if err != nil {
		return nil, err
	}
	listed, err := dr.listWaiting(ctx, false)
	if !slices.ContainsFunc(listed, func(d Draft) bool { return d.OwnerID == dr.config.Locks.OwnerID() }) {
		dr.do(dr.reconsiderUnlisted)
	}
	return listed, err
}

// reconsiderUnlisted is reconsider for a page whose text is not among the drafts: its changes may be none. Another page may have saved that
// text and not announced it yet. Then the page is not asked, because it would make a draft of the text again.
func (dr *drafter) reconsiderUnlisted() {
	if !dr.idles() || !dr.changes.dirty() {
		return
	}
	dr.work.Go(func() {
		ctx, stop := context.WithTimeout(dr.life, 2*answerLimit)
		defer stop()
		if _, err := dr.listWaiting(ctx, true); err == nil {
			dr.do(dr.reconsider)
		}
	})
}

// listWaiting lists the drafts, and lists them again if this page has learned something about them meanwhile. With refresh, it also looks for
// drafts that another page has saved. Then it answers nothing if the history cannot be listed.
func (dr *drafter) listWaiting(ctx context.Context, refresh bool) ([]Draft, error) {
	for round := 1; ; round++ {
		var revision int64
		dr.do(func() { revision = dr.drafts.revision })
		listed, all, err := dr.listDrafts(ctx, refresh)
		current := true
		dr.do(func() {
			current = revision == dr.drafts.revision || round == reloads
			if refresh {
				dr.savedElsewhere(all)
			}
			if current && err == nil {
				listed = dr.recordWaiting(listed)
			}
		})
		if current || err != nil {
			return listed, err
		}
	}
}

// listDrafts returns the drafts that no generation contains, and the generations, which it lists only once: both are of one time. The
// generations are listed after the drafts, because an editor saves a draft before it removes it. With refresh, listDrafts lists them in any
// case, and fails if it cannot.
func (dr *drafter) listDrafts(ctx context.Context, refresh bool) (listed []Draft, all []Generation, err error) {
	limit := callLimit
	if refresh { // the history must be listed too
		limit = answerLimit
	}
	limited, stop := context.WithTimeout(ctx, limit)
	defer stop()
	if listed, err = listFrom(limited, dr.config.Drafts); err != nil {
		err = asError(err, CodeReadFailed, "the drafts of this document could not be listed")
	}
	if refresh || len(listed) > 0 {
		limited, stop := context.WithTimeout(ctx, answerLimit)
		defer stop()
		var unlisted error
		if all, unlisted = dr.config.list(limited); refresh { // otherwise, a draft that is saved already is offered once more
			err = cmp.Or(err, unlisted)
		}
	}
	listed = without(listed, func(d Draft) bool {
		return slices.ContainsFunc(all, func(g Generation) bool { return g.contains(d) })
	})
	return listed, all, err
}

// recordWaiting records the listed drafts, and returns the drafts that wait for a decision.
func (dr *drafter) recordWaiting(listed []Draft) []Draft {
	reopened := dr.drafts.storing > 0 || dr.changes.count() != dr.drafts.ownMarks // storing or typing has opened the file of the draft again
	if d := dr.drafts.own; d != nil && reopened && !slices.ContainsFunc(listed, func(l Draft) bool { return l.ID == d.ID }) {
		listed = append([]Draft{*d}, listed...)
	}
	before := len(dr.drafts.waiting)
	fresh := without(dr.drafts.setWaiting(listed), func(d Draft) bool { return dr.role == editing && d.ID == dr.drafts.lineage }) // the page saves that one
	if len(listed) != before {
		dr.events.tell(Event{Type: EventPhase, State: dr.state()})
	}
	dr.tellDrafts(fresh, nil)
	return listed
}
