package autosave

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/internal/wait"
	"github.com/holdfast-dev/holdfast/lock"
)

// handing is a handover on the side of the one who edits.
type handing struct {
	round, to string
	stop      context.CancelFunc
	term      int64       // in which this page leaves because of it; 0 before
	offer     *time.Timer // while the lock is offered; nil before
}

// renew offers the lock anew, for as long as at first.
func (h *handing) renew(s *Saver) {
	if h.offer != nil && h.offer.Stop() {
		h.offer.Reset(handoverLimit)
		s.post(Message{Kind: EditGranted, Round: h.round, Detail: s.lease.ID})
	}
}

// answer deals with a message of another page.
func (s *Saver) answer(m Message) {
	switch m.Kind {
	case EditRequest:
		s.rival(m)
		switch {
		case s.handing != nil && s.handing.round == m.Round: // asked again: it is under way
			s.post(Message{Kind: EditAccepted, Round: m.Round, Detail: s.lease.ID})
			s.handing.renew(s)
		case s.handing != nil, s.role == loading:
			s.post(Message{Kind: EditBusy, Round: m.Round})
		case s.role == editing, s.verifying():
			s.handOver(m)
		case m.Document == s.document() && !m.Far:
			s.letPass()
		}
	case EditRival:
		s.rival(m)
	case EditCancelled:
		if s.asking != nil {
			delete(s.asking.rivals, m.Round)
		}
		if s.handing != nil && s.handing.round == m.Round {
			s.handing.stop()
		}
	case EditAccepted, EditGranted, EditRefused, EditBusy, EditLeft, EditSilent:
		if s.asking != nil && s.asking.round == m.Round {
			s.asking.hear(m)
		}
	case DraftResolved:
		s.recount()
	case Edits:
		s.recount() // the new editor may have adopted some
		if s.role == viewing {
			s.named(m.Holder)
		}
		if s.asking != nil {
			s.asking.hear(m)
		}
	}
}

// named notes who edits, and tells it where that is news.
func (s *Saver) named(h lock.Holder) {
	known := s.holder != nil && s.holder.OwnerID == h.OwnerID && s.holder.LeaseID == h.LeaseID
	s.holder = &h
	switch {
	case s.unnamed != nil: // autosave:readonly is waiting for it
		close(s.unnamed)
		s.unnamed = nil
	case !known:
		s.events.push(Event{Type: EventPhase, State: s.state()})
	}
}

// rival notes that another page asks at the same time, and lets it know of this one.
func (s *Saver) rival(m Message) {
	if s.asking == nil {
		return
	}
	if _, known := s.asking.rivals[m.Round]; !known {
		s.asking.rivals[m.Round] = m
		s.post(Message{Kind: EditRival, Round: s.asking.round, Force: s.asking.force})
	}
}

// tookOver tells the others that this page edits now. Its rivals get their answer first: after Edits, they would ask this page.
func (s *Saver) tookOver() {
	l := s.lease
	if s.asking != nil {
		for round := range s.asking.rivals {
			s.post(Message{Kind: EditBusy, Round: round})
		}
	}
	s.post(Message{Kind: Edits, Holder: lock.Holder{Resource: l.Resource, Mode: l.Mode, Strategy: l.Strategy, OwnerID: l.OwnerID,
		OwnerName: l.OwnerName, LeaseID: l.ID, Token: l.Token, Since: l.AcquiredAt, ExpiresAt: l.ExpiresAt}})
}

// handOver saves and lets the asker have the lock. The lock stays here until the asker
// has taken it: so nobody can come between, and if the asker is gone nothing happened.
func (s *Saver) handOver(m Message) {
	ctx, stop := context.WithCancel(s.life)
	h := &handing{round: m.Round, to: m.From, stop: stop}
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
			if s.handing = nil; s.role == leaving && s.term == h.term {
				s.enter(editing)
				s.settle()
			}
			if err != nil {
				s.post(Message{Kind: EditRefused, Round: h.round, Detail: err.Error()})
			}
		})
	})
}

// prepare returns an error where the lock is not to be handed over, and nil when it was
// offered, but not taken in time.
func (s *Saver) prepare(ctx context.Context, h *handing) error {
	if err := s.veto(ctx, h.to); err != nil {
		return err
	}
	if !s.leaveFor(ctx, h) {
		return nil
	}
	if err := s.flushLast(ctx); err != nil {
		return err
	}
	var taken <-chan struct{}
	s.do(func() {
		if s.handing == h && s.term == h.term {
			taken, h.offer = s.leaseDone, time.NewTimer(handoverLimit)
			s.post(Message{Kind: EditGranted, Round: h.round, Detail: s.lease.ID})
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

// leaveFor makes this page leave for a handover, and reports whether it does. A page that
// just makes sure of its lease does that first.
func (s *Saver) leaveFor(ctx context.Context, h *handing) bool {
	for ctx.Err() == nil {
		left := false
		var verdict chan struct{}
		s.do(func() {
			verdict = s.verdict
			if left = s.role == editing && ctx.Err() == nil; left { // else the handover has ended meanwhile
				s.leave()
				h.term = s.term
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

// endHandover ends a handover because this page leaves anyway, and returns its round.
func (s *Saver) endHandover() (round string) {
	if s.handing != nil {
		round = s.handing.round
		s.handing.stop()
		s.handing = nil
	}
	return round
}

func (s *Saver) veto(ctx context.Context, from string) error {
	if s.config.OnHandover == nil {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, vetoLimit)
	defer stop()
	said := make(chan error, 1)
	go func() { said <- s.config.OnHandover(ctx, from) }()
	select {
	case err := <-said:
		if ctx.Err() == nil {
			return err
		}
	case <-ctx.Done():
	}
	return nil
}
