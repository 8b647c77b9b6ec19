package autosave

import (
	"context"
	"errors"
	"slices"

	"github.com/holdfast-dev/holdfast/lock"
)

// loss is the text that a page could not save when it became read-only.
type loss struct {
	dirty  bool
	marked int64
	text   int64
	cause  Cause
}

// lossCause returns the reason why a page that becomes read-only cannot save.
func (dr *drafter) lossCause(err error) Cause {
	if dr.config.offline() || dr.lease.Strategy == lock.Remote && errors.Is(err, lock.ErrStale) {
		return CauseOffline
	}
	return CauseLockLost
}

// keepLoss keeps the present text of the page, in memory and as a draft. A later loss replaces an earlier one, which is
// a draft by then.
func (dr *drafter) keepLoss(l loss) {
	ctx, stop := context.WithTimeout(dr.life, writeLimit)
	defer stop()
	taken := make(chan []byte, 1)
	go func() {
		text, _ := dr.config.snapshot(ctx) // after an error, the draft contains the last text that the page returned
		taken <- text
	}()
	draft, err := dr.config.seal(ctx, l.cause) // after an error, the page has its text in memory, and Dispose reports what it cannot store
	text := <-taken
	dr.do(func() {
		if draft != nil {
			dr.sealed(*draft, l.text, dr.newest)
			dr.recount() // another page may have made it the content already
		}
		if dr.role != editing && dr.drafts.text == l.text && l.marked > dr.drafts.unsaved.marked && (draft != nil || text != nil && (err != nil || dr.config.Drafts == nil)) { // otherwise the user has discarded it
			dr.drafts.unsaved = unsaved{text, l.marked, draft}
		}
		if draft == nil && err == nil && dr.config.Drafts != nil {
			dr.settled(l)
		}
	})
}

// keepLast stores the unsaved text of this page as a draft. failed is the error of an attempt to save it, if there was
// one. It returns the reason why the page leaves a draft behind.
func (dr *drafter) keepLast(ctx context.Context, r role, failed error) error {
	if errors.Is(failed, ErrDisposed) {
		return failed
	}
	var dirty bool
	var refusal error
	l := loss{}
	if !dr.do(func() {
		// An editor that has saved leaves behind only the text typed after the call.
		dirty, refusal = failed != nil || dr.role != leaving && dr.changes.dirty(), dr.refusal()
		l = loss{dirty, dr.changes.count(), dr.drafts.text, dr.drafts.leaveCause(failed, dr.config.offline())}
	}) || !dirty {
		return failed
	}
	ctx, stop := before(ctx, answerLimit, releaseLimit)
	defer stop()
	var draft *Draft
	err := answered(ctx, CodeWriteFailed, theDrafts, func(ctx context.Context) (err error) {
		if draft, err = dr.config.seal(context.WithoutCancel(ctx), l.cause); draft != nil {
			dr.do(func() { dr.sealed(*draft, l.text, dr.newest) })
		}
		return err
	})
	if draft == nil && err == nil && dr.config.Drafts != nil {
		dr.do(func() { dr.settled(l) })
	}
	switch {
	case failed != nil:
		return errors.Join(failed, err)
	case r == suspended || err == nil && draft == nil && dr.config.Drafts != nil:
		return err // the page still has its text, or everything is saved
	}
	return errors.Join(refusal, err)
}

// reconsider asks a page that may not write whether it still has unsaved text, after a decision: the page may have made the draft by itself.
// New text becomes a draft.
func (dr *drafter) reconsider() {
	if dr.config.Drafts == nil || !dr.idles() || !dr.changes.dirty() {
		return
	}
	l := loss{marked: dr.changes.count(), text: dr.drafts.text, cause: CauseLockLost}
	dr.work.Go(func() {
		ctx, stop := context.WithTimeout(dr.life, answerLimit)
		defer stop()
		if dr.events.handled(ctx) != nil {
			return // the page has not heard of the decision
		}
		draft, err := dr.config.seal(ctx, l.cause)
		dr.do(func() {
			switch {
			case draft == nil && err == nil:
				dr.settled(l)
			case draft != nil && !slices.ContainsFunc(dr.drafts.waiting, func(d Draft) bool { return d.ID == draft.ID && d.Number >= draft.Number }):
				dr.sealed(*draft, l.text, dr.newest)
			}
		})
	})
}

// settled records that nothing of the text is unsaved, if this page may not write and nothing was typed since. It loads the content before it
// edits. A mark that came meanwhile, or that comes later, may be a late one of the same text: then the page is asked again.
func (dr *drafter) settled(l loss) {
	if !dr.idles() || !dr.changes.dirty() || dr.drafts.text != l.text {
		return
	}
	if dr.changes.count() != l.marked {
		dr.reconsider()
		return
	}
	dr.changes.forget()
	dr.drafts.settled, dr.drafts.unsaved = true, unsaved{marked: l.marked}
	dr.newest = nil
	dr.events.tell(Event{Type: EventPhase, State: dr.state()})
}
