package autosave

import (
	"cmp"
	"context"
	"slices"

	"github.com/holdfast-dev/holdfast/lock"
)

// Resolution is a decision about a draft.
type Resolution string

// The resolutions.
const (
	AsContent    Resolution = "content"    // it becomes the current generation
	AsGeneration Resolution = "generation" // it becomes a generation that is not current
	AsDiscard    Resolution = "discard"    // it is removed
)

// ResolveDraft decides about a draft. AsContent saves the text of this page, makes the draft the content and gives it
// to the page by [EventEditable]. AsGeneration keeps the draft in the history, and saves the text of this page first if
// nothing is saved yet. It fails with ErrQuota if the limits of the history leave no space. The draft is removed once that
// is durable; if it cannot be removed now, the next editor does so. AsDiscard removes it at once, and fails with ErrNotFound if this page makes
// it the content at that moment, or if it has more text than this page knew.
//
// A read-only page can discard a draft, because that changes no saved content. The other two decisions fail there with
// ErrReadOnly. AsContent also fails with it if the page was read-only meanwhile. Other errors match ErrNotFound,
// ErrInvalidArgument or are those of FlushNow.
func (s *Saver) ResolveDraft(ctx context.Context, id string, as Resolution) error {
	if as != AsContent && as != AsGeneration && as != AsDiscard {
		return &Error{Code: CodeInvalidArgument, Detail: `as must be "content", "generation" or "discard"`}
	}
	ctx, stop := bounded(ctx)
	defer stop()
	lease := s.held.Load()
	var known []Draft
	s.do(func() { known = s.drafts.waiting }) // a user discards no text that this page did not know
	listed, err := s.waitingDrafts(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(listed, func(d Draft) bool { return d.ID == id })
	if i < 0 || as == AsDiscard && slices.ContainsFunc(known, func(k Draft) bool { return k.ID == id && k.Number < listed[i].Number }) {
		return noDraft(id)
	}
	d := listed[i]
	own := false
	s.do(func() { own = s.role == editing && s.drafts.lineage == id })
	switch {
	case own && as != AsDiscard: // the page shows the draft and newer text, and saves both
		_, err = s.FlushNow(ctx)
	case as != AsDiscard:
		err = s.saveDraft(ctx, d, as, lease)
	}
	if err != nil {
		return err
	}
	if err := s.removeDraft(ctx, d, as); err != nil {
		return err
	}
	s.do(func() { s.resolved(id, d.Number) })
	s.post(Message{Kind: DraftResolved, Round: id, Question: int(d.Number)})
	return nil
}

func noDraft(id string) error {
	return &Error{Code: CodeNotFound, Operation: OpRead, Resource: id, Detail: "there is no such draft; it may be saved already, or have more text"}
}

// saveDraft makes the draft the content and gives it to the page, or keeps it in the history. decided is the lease at the time of the decision.
func (wr *writer) saveDraft(ctx context.Context, d Draft, as Resolution, decided *lock.Lease) error {
	lease, ok := wr.editingLease()
	if !ok {
		err := wr.whyEnded()
		wr.do(func() { err = wr.refusal() })
		return err
	}
	text, err := wr.config.readDraft(ctx, d.ID)
	if err != nil {
		return asError(err, CodeReadFailed, "the draft could not be read")
	}
	if as == AsContent {
		return wr.makeCurrent(ctx, &restore{content: text, draft: &d, lease: decided})
	}
	empty := false
	if wr.do(func() { empty = wr.newest == nil }); empty { // otherwise the draft would become the content
		if _, err := wr.flush(ctx, editing); err != nil {
			return err
		}
	}
	err = answered(ctx, CodeWriteFailed, theStore, func(ctx context.Context) error {
		_, err := wr.config.Store.Commit(ctx, Commit{Content: Bytes(text), Draft: d.ID, Number: d.Number, Aside: true, Token: lease.Token,
			SavedAt: wr.config.Clock.Now().Wall, OwnerName: cmp.Or(d.OwnerName, lease.OwnerName), Limits: wr.config.Limits})
		return err
	})
	if err != nil {
		wr.do(func() { wr.emptied(err) })
		return asError(err, CodeWriteFailed, "the draft could not be kept as a generation")
	}
	return nil
}
