package autosave

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/internal/wait"
)

// handing is a handover on the side of the page that edits.
type handing struct {
	round, to string
	question  int // the last one of the round
	stop      context.CancelFunc
	offer     *time.Timer // runs while the lock is offered; nil before
	cancelled bool        // the asking page has withdrawn its request
	next      *Message    // a request that came between that and the end of the handover; nil: there is none
}

// cancel ends the handover, or forgets the request after it, if its page has withdrawn that round.
func (h *handing) cancel(round string) {
	if h.next != nil && h.next.Round == round {
		h.next = nil
	}
	if h.round == round {
		h.cancelled = true
		h.stop()
	}
}

// answer handles a message of another page.
func (s *Saver) answer(m Message) {
	switch m.Kind {
	case EditRequest:
		s.rival(m)
		switch {
		case s.handing != nil && s.handing.round == m.Round: // asked again: the handover is under way
			s.post(Message{Kind: EditAccepted, Round: m.Round, Detail: s.lease.ID})
			s.renewOffer(m)
		case s.role == loading && s.drafts.lineage != "" && s.drafts.lineage == s.config.Lineage:
			// The page shows its text already, and may edit before this Saver. The other page asks again when this one edits.
		case s.handing != nil && s.handing.cancelled && s.handing.next == nil:
			s.handing.next = &m
		case s.handing != nil, s.role == loading:
			s.post(Message{Kind: EditBusy, Round: m.Round})
		case s.role == editing, s.verifying():
			s.handOver(m)
		case !m.Remote:
			s.letPass(m)
		}
	case EditRival:
		s.rival(m)
	case EditCancelled:
		if s.asking != nil {
			delete(s.asking.rivals, m.Round)
		}
		if s.handing != nil {
			s.handing.cancel(m.Round)
		}
	case EditAccepted, EditGranted, EditRefused, EditBusy, EditLeft, EditSilent:
		if s.asking != nil && s.asking.round == m.Round {
			s.asking.receive(m)
			if m.Remote {
				s.turnAway()
			}
		}
	case DraftResolved:
		s.resolved(m.Round, int64(m.Question))
		s.recount()
	case Edits:
		s.recount() // the new editor may have adopted some
		if s.role == viewing {
			s.named(m.Holder)
		}
		if s.asking != nil {
			s.asking.receive(m)
		}
	}
}

// handOver saves and lets the asking page take the lock. This page keeps the lock until then, so that no other page can
// come between, and nothing happens if the asking page is gone.
func (s *Saver) handOver(m Message) {
	ctx, stop := context.WithCancel(s.life)
	h := &handing{round: m.Round, question: m.Question, to: m.From, stop: stop}
	s.handing = h
	s.post(Message{Kind: EditAccepted, Round: m.Round, Detail: s.lease.ID})
	s.work.Go(func() {
		defer stop()
		err := s.prepare(ctx, h)
		s.do(func() {
			if s.handing != h {
				return // the lock was taken
			}
			if wait.Closed(s.leaseDone) {
				s.lost()
				return
			}
			if s.handing = nil; s.role == leaving {
				s.enter(editing)
				s.settle()
			}
			if err != nil {
				s.post(Message{Kind: EditRefused, Round: h.round, Detail: err.Error()})
			}
			if h.next != nil {
				s.answer(*h.next)
			}
		})
	})
}

// prepare returns an error if the lock must not be handed over, and nil if it was offered but not taken in time.
func (s *Saver) prepare(ctx context.Context, h *handing) error {
	if err := s.config.veto(ctx, h.to); err != nil {
		return err
	}
	if !s.leaveFor(ctx) {
		return nil
	}
	if err := s.saveLast(ctx); err != nil {
		return err
	}
	var taken <-chan struct{}
	s.do(func() {
		if s.handing == h && s.role == leaving {
			taken, h.offer = s.leaseDone, time.NewTimer(handoverLimit)
			s.grant(h)
		}
	})
	if taken != nil {
		select {
		case <-taken:
		case <-h.offer.C:
		case <-ctx.Done():
		}
	}
	return nil
}

// saveLast saves all text of the page, in the time that the asking page allows for that.
func (s *Saver) saveLast(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, handoverLimit+draftLimit+releaseLimit)
	defer stop()
	for range reloads {
		if err := s.flushLast(ctx); err != nil {
			return err
		}
		if !s.unreported(ctx) {
			break
		}
		s.mark()
	}
	return nil
}

// unreported reports whether the page, which knows by now that it may not edit, has text whose mark is still on its way. That text is a draft
// then, which the next save contains.
func (s *Saver) unreported(ctx context.Context) bool {
	ctx, stop := before(ctx, draftLimit, draftLimit+releaseLimit)
	defer stop()
	if s.events.handled(ctx) != nil {
		return false
	}
	draft, _ := s.config.seal(ctx, CauseLockLost) // after an error, the text becomes a draft when the lock is lost
	return draft != nil
}

// leaveFor makes this page leave for a handover, and reports whether it does. A page that is verifying its lease
// finishes that first.
func (s *Saver) leaveFor(ctx context.Context) bool {
	for ctx.Err() == nil {
		left := false
		var verdict chan struct{}
		s.do(func() {
			verdict = s.verdict
			if left = s.role == editing && ctx.Err() == nil; left { // otherwise the handover has ended meanwhile
				s.leave()
				s.emitPhase(s.phase())
			}
		})
		if left {
			return true
		}
		select {
		case <-verdict:
		case <-ctx.Done():
		}
	}
	return false
}
