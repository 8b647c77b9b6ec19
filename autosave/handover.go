package autosave

import (
	"context"
	"time"
)

// handing is a handover of the lock of this page to another page.
type handing struct {
	round, to string             // the request, and the OwnerID of the page that asks
	question  int                // the last one of the round
	stop      context.CancelFunc // ends the handover
	offer     *time.Timer        // runs while the lock is offered; nil before
	cancelled bool               // the asking page has withdrawn its request
	next      *Message           // a request to answer after the handover: it came after the withdrawal, or when the offer had just ended
}

// cancel ends the handover if its page has withdrawn that round. If the page of the next request has, cancel forgets the next request.
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
		s.answerRequest(m)
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
		s.refreshDrafts()
	case Edits:
		s.refreshDrafts() // the new editor may have adopted some
		if s.role == viewing {
			s.named(m.Holder)
		}
		if s.asking != nil {
			s.asking.receive(m)
		}
	}
}

// answerRequest begins a handover, or answers the page that asks for the lock.
func (s *Saver) answerRequest(m Message) {
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
}

// handOver saves and lets the asking page take the lock. This page keeps the lock until then, so that no other page can
// come between, and nothing happens if the asking page is gone.
func (s *Saver) handOver(m Message) {
	ctx, stop := context.WithCancel(s.life)
	g := giver{&s.page, &handing{round: m.Round, question: m.Question, to: m.From, stop: stop}}
	s.handing = g.own
	s.post(Message{Kind: EditAccepted, Round: m.Round, Detail: s.lease.ID})
	s.work.Go(func() {
		defer stop()
		err := g.prepare(ctx)
		s.do(func() {
			if next := g.finish(err); next != nil {
				s.answer(*next)
			}
		})
	})
}
