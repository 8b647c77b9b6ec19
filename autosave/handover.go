package autosave

import (
	"cmp"
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/internal/wait"
	"github.com/holdfast-dev/holdfast/lock"
)

// handing is a handover on the side of the one who edits.
type handing struct {
	round, to string
	stop      context.CancelFunc
}

// ask is a handover on the side of the one who wants to edit.
type ask struct {
	round   string
	force   bool
	answers chan Message       // has room for all there can be
	rivals  map[string]Message // others who asked meanwhile, by round
}

// answer deals with a message of another page.
func (s *Saver) answer(m Message) {
	switch m.Kind {
	case EditRequest:
		s.rival(m)
		switch {
		case s.handing != nil && s.handing.round != m.Round, s.role == loading:
			s.post(Message{Kind: EditBusy, Round: m.Round})
		case s.role == editing:
			s.handOver(m)
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
	case EditAccepted, EditGranted, EditRefused, EditBusy:
		if s.asking != nil && s.asking.round == m.Round {
			select {
			case s.asking.answers <- m:
			default:
			}
		}
	case Edits:
		if s.role == viewing {
			s.named(m.Holder)
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

// tookOver tells the others that this page edits now.
func (s *Saver) tookOver() {
	l := s.lease
	s.post(Message{Kind: Edits, Holder: lock.Holder{Resource: l.Resource, Mode: l.Mode, Strategy: l.Strategy, OwnerID: l.OwnerID,
		OwnerName: l.OwnerName, LeaseID: l.ID, Token: l.Token, Since: l.AcquiredAt, ExpiresAt: l.ExpiresAt}})
	if s.asking != nil {
		for round := range s.asking.rivals {
			s.post(Message{Kind: EditBusy, Round: round})
		}
	}
}

// handOver saves and lets the asker have the lock. The lock stays here until the asker
// has taken it: so nobody can come between, and if the asker is gone nothing happened.
func (s *Saver) handOver(m Message) {
	ctx, stop := context.WithCancel(s.life)
	h := &handing{round: m.Round, to: m.From, stop: stop}
	s.handing = h
	s.post(Message{Kind: EditAccepted, Round: m.Round})
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
		})
	})
}

// prepare returns an error where the lock is not to be handed over, and nil when it was
// offered, but not taken in time.
func (s *Saver) prepare(ctx context.Context, h *handing) error {
	if err := s.veto(ctx, h.to); err != nil {
		return err
	}
	s.do(func() {
		if s.handing == h && s.role == editing {
			s.leave()
			s.emitPhase(s.phase())
		}
	})
	if err := s.flushLast(ctx); err != nil {
		return err
	}
	offered := false
	s.do(func() {
		if offered = s.handing == h && s.role == leaving; offered {
			s.post(Message{Kind: EditGranted, Round: h.round})
		}
	})
	if lease := s.held.Load(); offered && lease != nil {
		select {
		case <-lease.Done():
		case <-time.After(handoverLimit):
		case <-ctx.Done():
		}
	}
	return nil
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

// EditOptions say how to ask for the lock.
type EditOptions struct {
	// Force takes the lock from a holder that does not answer. One that answers no is
	// never robbed.
	Force bool
	Grace time.Duration // how long an answer is waited for; default 5 s
}

// RequestEdit asks the page that edits to save and hand over, and returns when this page
// edits and the listener was given what was saved last. It returns at once where this
// page edits already.
//
// Errors match ErrHandoverRefused, ErrHandoverBusy (another page asked before),
// ErrHandoverNoAnswer, ErrReadOnly (granted, but the lock could not be taken),
// ErrAborted with the cause of ctx, ErrDisabled or ErrDisposed. None takes longer than
// Grace and some thirty seconds.
func (s *Saver) RequestEdit(ctx context.Context, opts EditOptions) error {
	opts.Grace = cmp.Or(opts.Grace, DefaultGrace)
	a := &ask{round: lock.NewID(), force: opts.Force, answers: make(chan Message, 8), rivals: make(map[string]Message)}
	var verdict chan struct{}
	var at role
	begin := func() {
		at, verdict = s.role, s.verdict
		switch {
		case at == editing, at == suspended, at == leaving:
		case s.asking != nil:
			at = ended
		default:
			s.asking = a
			s.post(Message{Kind: EditRequest, Round: a.round, Force: a.force})
		}
	}
	for at = leaving; at == leaving; { // until it is known who has what this page gives away
		if !s.do(begin) {
			return s.over()
		}
		if at == leaving {
			if err := s.await(ctx, verdict); err != nil {
				return err
			}
		}
	}
	switch at {
	case editing:
		return nil
	case suspended:
		return &Error{Code: CodeReadOnly, Detail: "this page is suspended; resume it first"}
	case ended:
		return &Error{Code: CodeHandoverBusy, Detail: "this page has asked already"}
	}
	defer s.do(func() { s.asking = nil })
	if s.config.NoStandby {
		// Nobody would answer if nobody held it.
		if done, err := s.tryFree(ctx, verdict); done {
			return err
		}
	}
	err := s.negotiate(ctx, a, opts, verdict)
	if err != nil {
		s.post(Message{Kind: EditCancelled, Round: a.round})
	}
	return err
}

// tryFree takes the lock where nobody holds it.
func (s *Saver) tryFree(ctx context.Context, verdict chan struct{}) (done bool, err error) {
	if s.whoEdits(ctx, rollCall) != nil {
		return false, nil
	}
	s.do(func() {
		if s.role == viewing {
			verdict = s.verdict
			s.stop()
			s.begin()
		}
	})
	err = s.await(ctx, verdict)
	return err != nil || !s.ReadOnly(), err
}

// await waits until it is known who edits.
func (s *Saver) await(ctx context.Context, verdict chan struct{}) error {
	select {
	case <-verdict:
		return nil
	case <-ctx.Done():
		return &Error{Code: CodeAborted, Detail: "the caller gave up", Err: context.Cause(ctx)}
	case <-s.gone:
		return s.over()
	}
}

func (s *Saver) negotiate(ctx context.Context, a *ask, opts EditOptions, verdict chan struct{}) error {
	timer := time.NewTimer(opts.Grace)
	defer timer.Stop()
	for {
		select {
		case <-verdict: // its turn came by itself
			if !s.ReadOnly() {
				return nil
			}
			s.do(func() { verdict = s.verdict })
		case m := <-a.answers:
			switch m.Kind {
			case EditAccepted:
				timer.Reset(vetoLimit + handoverLimit + opts.Grace)
			case EditRefused:
				return &Error{Code: CodeHandoverRefused, Detail: m.Detail}
			case EditBusy:
				return &Error{Code: CodeHandoverBusy, Detail: "another page asked before"}
			case EditGranted:
				return s.take(ctx)
			}
		case <-timer.C:
			if !opts.Force {
				return &Error{Code: CodeHandoverNoAnswer, Detail: "the page that edits does not answer; force takes the lock from it"}
			}
			if s.outranked(a) {
				return &Error{Code: CodeHandoverBusy, Detail: "another page takes it over at this moment"}
			}
			return s.take(ctx)
		case <-ctx.Done():
			return &Error{Code: CodeAborted, Detail: "the caller gave up", Err: context.Cause(ctx)}
		case <-s.gone:
			return s.over()
		}
	}
}

// outranked reports whether somebody else is about to take the lock by force as well.
// Of those the one with the lowest round does it.
func (s *Saver) outranked(a *ask) (yes bool) {
	s.do(func() {
		for round, m := range a.rivals {
			yes = yes || m.Force && round < a.round
		}
	})
	return yes
}

// take takes the lock from whoever holds it, and waits until this page edits.
func (s *Saver) take(ctx context.Context) error {
	var verdict chan struct{}
	already := false
	s.do(func() {
		if already = s.role == editing; already {
			return
		}
		verdict = s.verdict
		if s.role == loading {
			return // its turn came by itself
		}
		s.stop()
		s.enter(starting)
		opts := s.config.Lock
		opts.Steal, opts.IfAvailable, opts.Timeout = true, false, handoverLimit
		s.acquire(opts)
	})
	if already {
		return nil
	}
	err := s.await(ctx, verdict)
	if err != nil || !s.ReadOnly() {
		return err
	}
	s.do(func() { err = s.refusal() })
	return err
}
