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
// to the page by [EventEditable]. AsGeneration keeps the draft in the history, and fails with ErrQuota if the limits of
// the history leave no room. The draft is removed once that is durable. AsDiscard removes it at once,
// and fails with ErrNotFound if this page makes it the content at that moment, or if it has more text than this page knew.
//
// A page that may not write can discard a draft, because that changes no saved content; the other two fail there with
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
	s.do(func() { known = s.drafts.waiting }) // a user discards no text that this page has not heard of
	listed, err := s.Drafts(ctx)
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

// removeDraft removes a draft after a decision. It fails with ErrNotFound if the user discards a draft that this page makes the content.
func (s *Saver) removeDraft(ctx context.Context, d Draft, as Resolution) error {
	remove := func(how func(context.Context, Draft) error) error {
		if err := how(ctx, d); err != nil {
			return asError(err, CodeWriteFailed, "the draft could not be removed")
		}
		return nil
	}
	if as != AsDiscard {
		return remove(s.config.removeDraft)
	}
	decided, err := s.adopted.decide(ctx, d, AsDiscard, func() error { return remove(s.config.discardDraft) })
	if err == nil && decided == AsContent {
		return noDraft(d.ID)
	}
	return err
}

// resolved forgets a draft after a decision. A page that still shows the text, with nothing typed since, does not make
// a draft of it again. It loads the content before it edits.
func (s *Saver) resolved(id string, number int64) {
	g := Generation{Draft: id, Number: number}
	own, marks := s.drafts.contained(g), s.changes.count()
	if own != nil && s.role == viewing && marks == s.drafts.unsaved.marked {
		s.changes.forget()
		s.newest = nil
	}
	s.events.tell(Event{Type: EventPhase, State: s.state(), Generation: &g})
	if own == nil || own.Number < number || marks == s.drafts.ownMarks { // otherwise more was typed
		s.reconsider()
	}
}

// reconsider asks a page that may not write whether it still has unsaved text, after a decision: the page may have made the draft by itself.
// New text becomes a draft.
func (s *Saver) reconsider() {
	if s.config.Drafts == nil || !s.idles() || !s.changes.dirty() {
		return
	}
	l := loss{marked: s.changes.count(), text: s.drafts.text, cause: CauseLockLost}
	s.work.Go(func() {
		ctx, stop := context.WithTimeout(s.life, answerLimit)
		defer stop()
		if s.Told(ctx) != nil {
			return // the page has not heard of the decision
		}
		draft, err := s.config.seal(ctx, l.cause)
		s.do(func() {
			switch {
			case draft == nil && err == nil:
				s.settled(l)
			case draft != nil && !slices.ContainsFunc(s.drafts.waiting, func(d Draft) bool { return d.ID == draft.ID && d.Number >= draft.Number }):
				s.sealed(*draft, l.text, s.newest)
			}
		})
	})
}

// settled records that nothing of the text is unsaved, if this page may not write and nothing was typed since. It loads the content before it
// edits. A mark that came meanwhile, or that comes later, may be a late one of the same text: then the page is asked again.
func (s *Saver) settled(l loss) {
	if !s.idles() || !s.changes.dirty() || s.drafts.text != l.text {
		return
	}
	if s.changes.count() != l.marked {
		s.reconsider()
		return
	}
	s.changes.forget()
	s.drafts.settled, s.drafts.unsaved = true, unsaved{marked: l.marked}
	s.newest = nil
	s.events.tell(Event{Type: EventPhase, State: s.state()})
}

// saveDraft makes the draft the content and gives it to the page, or keeps it in the history. decided is the lease at the time of the decision.
func (s *Saver) saveDraft(ctx context.Context, d Draft, as Resolution, decided *lock.Lease) error {
	lease, ok := s.Lease()
	if !ok {
		err := s.over()
		s.do(func() { err = s.refusal() })
		return err
	}
	text, err := s.config.readDraft(ctx, d.ID)
	if err != nil {
		return asError(err, CodeReadFailed, "the draft could not be read")
	}
	if as == AsContent {
		return s.makeCurrent(ctx, &restore{content: text, draft: &d, lease: decided})
	}
	err = answered(ctx, CodeWriteFailed, theStore, func(ctx context.Context) error {
		_, err := s.config.Store.Commit(ctx, Commit{Content: Bytes(text), Draft: d.ID, Number: d.Number, Aside: true, Token: lease.Token,
			SavedAt: s.config.Clock.Now().Wall, OwnerName: cmp.Or(d.OwnerName, lease.OwnerName), Limits: s.config.Limits})
		return err
	})
	if err != nil {
		s.do(func() { s.emptied(err) })
		return asError(err, CodeWriteFailed, "the draft could not be kept as a generation")
	}
	return nil
}

// give makes the page load the content, which is the current generation. The page may not write before it has loaded
// it.
func (s *Saver) give(text []byte) {
	s.enter(loading)
	s.edit(loaded{newest: s.newest, content: text, foreign: true, waiting: s.drafts.waiting})
}
