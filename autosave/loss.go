package autosave

import (
	"context"
	"errors"
	"slices"

	"github.com/holdfast-dev/holdfast/lock"
)

// loss is the text that a page could not save when it became read-only.
type loss struct {
	dirty  bool  // there is such a text
	marked int64 // number of changes until then
	text   int64 // number of the text, see draftState
	cause  Cause // of the draft
}

// lossCause returns the cause of the draft of a page that becomes read-only because of err.
func (dr *drafter) lossCause(err error) Cause {
	if dr.config.offline() || dr.lease.Strategy == lock.Remote && errors.Is(err, lock.ErrStale) {
		return CauseOffline
	}
	return CauseLockLost
}

// seal stores the unsaved text of the page as a draft, and waits for that. Lists that are made meanwhile contain the previous draft of the text.
func (dr *drafter) seal(ctx context.Context, cause Cause) (*Draft, error) {
	dr.do(func() { dr.drafts.storing++ })
	defer dr.do(func() {
		dr.drafts.storing--
		dr.drafts.revision++ // for a list that began before
	})
	return dr.config.seal(ctx, cause)
}

// keepLoss keeps the present text of the page, in memory and as a draft. A later loss replaces an earlier one, which is
// a draft by then. keepLoss waits for the page and the drafts.
func (dr *drafter) keepLoss(l loss) {
	ctx, stop := context.WithTimeout(dr.life, writeLimit)
	defer stop()
	taken := make(chan []byte, 1)
	go func() {
		text, _ := dr.config.snapshot(ctx) // after an error, the draft contains the last text that the page returned
		taken <- text
	}()
	draft, err := dr.seal(ctx, l.cause) // after an error, the page has its text in memory, and Dispose reports what it cannot store
	text := <-taken
	dr.do(func() {
		if draft != nil {
			dr.sealed(*draft, l.text, dr.newest)
			dr.refreshDrafts() // another page may have made it the content already
		}
		lossStillShown := dr.role != editing && dr.drafts.text == l.text && l.marked > dr.drafts.unsaved.marked
		savedOrDiscarded := draft == nil && err == nil && dr.config.Drafts != nil
		if lossStillShown && !savedOrDiscarded && (draft != nil || text != nil) {
			dr.drafts.unsaved = unsaved{text, l.marked, draft}
		}
		if savedOrDiscarded {
			dr.nothingUnsaved(l)
		}
	})
}

// keepLast stores the unsaved text of a page that departs to role r as a draft. failed is the error of the last attempt to save it. keepLast
// returns that error, or another reason why text of this page is not part of the content.
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
		if draft, err = dr.seal(context.WithoutCancel(ctx), l.cause); draft != nil {
			dr.do(func() { dr.sealed(*draft, l.text, dr.newest) })
		}
		return err
	})
	if draft == nil && err == nil && dr.config.Drafts != nil {
		dr.do(func() { dr.nothingUnsaved(l) })
	}
	switch {
	case failed != nil:
		return errors.Join(failed, err)
	case r == suspended || err == nil && draft == nil && dr.config.Drafts != nil:
		return err // the page still has its text, or everything is saved
	}
	return errors.Join(refusal, err)
}

// reconsider asks a page that may not write whether it still has unsaved text, because a user has decided about a draft. The draft may be of
// that text, or the user may have typed more. New text becomes a draft.
func (dr *drafter) reconsider() {
	if dr.config.Drafts == nil || !dr.idles() || !dr.changes.dirty() {
		return
	}
	l := loss{marked: dr.changes.count(), text: dr.drafts.text, cause: CauseLockLost}
	dr.work.Go(func() {
		ctx, stop := context.WithTimeout(dr.life, answerLimit)
		defer stop()
		if dr.events.handled(ctx) != nil {
			return // the page does not know the decision yet
		}
		draft, err := dr.seal(ctx, l.cause)
		dr.do(func() {
			switch {
			case draft == nil && err == nil:
				dr.nothingUnsaved(l)
			case draft != nil && !slices.ContainsFunc(dr.drafts.waiting, func(d Draft) bool { return d.ID == draft.ID && d.Number >= draft.Number }):
				dr.sealed(*draft, l.text, dr.newest)
			}
		})
	})
}

// nothingUnsaved records that no text of this page is unsaved, if the page may not write and still shows that text. So it loads the content
// before it edits. If a change was reported meanwhile, or is reported later, it may be one that the text contains already. So the page is asked
// again.
func (dr *drafter) nothingUnsaved(l loss) {
	if !dr.idles() || !dr.changes.dirty() || dr.drafts.text != l.text {
		return
	}
	if dr.changes.count() != l.marked {
		dr.reconsider()
		return
	}
	dr.changes.forget()
	dr.drafts.awaitsLateMark, dr.drafts.unsaved = true, unsaved{marked: l.marked}
	dr.newest, dr.drafts.lineage = nil, ""
	dr.events.tell(Event{Type: EventPhase, State: dr.state()})
}
