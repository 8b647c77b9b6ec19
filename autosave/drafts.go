package autosave

import (
	"context"
	"errors"
	"slices"

	"github.com/holdfast-dev/holdfast/lock"
)

// sealed records that the page's text was stored as a draft, unless the content contains it by now. The number of the
// text says whether the page still shows it.
func (s *Saver) sealed(d Draft, text int64, content *Generation) {
	if content != nil && content.contains(d) {
		return
	}
	s.drafts.sealed(d, text, s.changes.count())
	s.emit(Event{Type: EventDraft, Draft: &d})
}

// tellDrafts emits events for drafts that were found, and for conflicts.
func (s *Saver) tellDrafts(fresh []Draft, sides []Conflict) {
	for _, d := range fresh {
		s.emit(Event{Type: EventDraft, Draft: &d})
	}
	for _, c := range sides {
		s.emit(Event{Type: EventConflict, Conflict: &c})
	}
}

// contained forgets the drafts that a generation contains. If this page sealed one of them before it went on, that
// draft is removed.
func (s *Saver) contained(g Generation) {
	if d := s.drafts.contained(g); d != nil {
		s.work.Go(func() {
			ctx, stop := context.WithTimeout(s.life, answerLimit)
			defer stop()
			_ = s.config.Drafts.Remove(ctx, d.ID, g.Number) // if this fails, the next editor removes it
		})
	}
}

// lossCause returns the reason why a page that becomes read-only cannot save.
func (s *Saver) lossCause(err error) Cause {
	if s.config.offline() || s.lease.Strategy == lock.Remote && errors.Is(err, lock.ErrStale) {
		return CauseOffline
	}
	return CauseLockLost
}

// recount finds out which drafts still wait for a decision, because another page may have decided about some.
func (s *Saver) recount() {
	s.drafts.news++ // for a list or a load that is under way
	if len(s.drafts.waiting) == 0 && s.drafts.own == nil {
		return
	}
	s.work.Go(func() {
		ctx, stop := context.WithTimeout(s.life, answerLimit)
		defer stop()
		all, _ := s.config.list(ctx)
		s.do(func() { s.savedElsewhere(all) })
		_, _ = s.Drafts(ctx) // a user who asks for them gets the error
	})
}

// savedElsewhere records that another page has saved the text that this page shows, as it was when it became a draft. This page does not make
// that draft again. If the text was merged, this page shows another text than the content.
func (s *Saver) savedElsewhere(all []Generation) {
	for _, g := range all {
		if d := s.drafts.own; d != nil && s.role == viewing && g.Draft == d.ID && g.Number >= d.Number {
			w := write{since: s.changes.since.Load(), marks: s.drafts.ownMarks}
			s.clean(&w)
			s.saved(&w, g)
		} else if d != nil && g.contains(*d) {
			s.resolved(d.ID, g.Number)
		}
		for _, d := range s.drafts.waiting {
			if g.contains(d) {
				s.resolved(d.ID, g.Number)
			}
		}
	}
}

// Drafts returns the drafts of this document that wait for a decision, the newest first.
// Errors match ErrReadFailed or ErrDisabled.
func (s *Saver) Drafts(ctx context.Context) ([]Draft, error) {
	if s.config.Disabled {
		return nil, ErrDisabled
	}
	if s.config.Drafts == nil {
		return nil, nil
	}
	ctx, end, err := s.reading(ctx)
	defer end()
	if err != nil {
		return nil, err
	}
	for round := 1; ; round++ {
		var news int64
		s.do(func() { news = s.drafts.news })
		listed, err := s.listDrafts(ctx)
		if err != nil {
			return nil, err
		}
		current := true
		s.do(func() {
			if current = news == s.drafts.news || round == reloads; current {
				listed = s.recordWaiting(listed)
			}
		})
		if current {
			return listed, nil
		}
	}
}

// listDrafts returns the drafts that no generation contains.
func (s *Saver) listDrafts(ctx context.Context) ([]Draft, error) {
	listed, err := listFrom(ctx, s.config.Drafts)
	if err != nil {
		return nil, asError(err, CodeReadFailed, "the drafts of this document could not be listed")
	}
	if len(listed) > 0 {
		limited, stop := context.WithTimeout(ctx, answerLimit)
		defer stop()
		all, _ := s.config.list(limited) // if this fails, a draft that is saved already is offered once more
		listed = without(listed, func(d Draft) bool {
			return slices.ContainsFunc(all, func(g Generation) bool { return g.contains(d) })
		})
	}
	return listed, nil
}

// recordWaiting records the listed drafts, and returns the drafts that wait for a decision.
func (s *Saver) recordWaiting(listed []Draft) []Draft {
	if d := s.drafts.own; d != nil && s.changes.count() != s.drafts.ownMarks && !slices.ContainsFunc(listed, func(l Draft) bool { return l.ID == d.ID }) {
		listed = append([]Draft{*d}, listed...) // typing has reopened its file
	}
	before := len(s.drafts.waiting)
	fresh := without(s.drafts.wait(listed), func(d Draft) bool { return s.role == editing && d.ID == s.drafts.lineage }) // the page saves that one
	if len(listed) != before {
		s.events.tell(Event{Type: EventPhase, State: s.state()})
	}
	s.tellDrafts(fresh, nil)
	return listed
}
