package autosave

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/lock"
)

// asks is how many pages in a row are asked to hand over, as one becomes the editor after the
// other.
const asks = 4

// ask is a handover on the side of the one who wants to edit. It never acquires the lock once
// it is withdrawn.
type ask struct {
	round     string
	force     bool
	grace     time.Duration
	answers   chan Message       // has room for all there can be
	withdrawn chan struct{}      // closed when the page is put to sleep or closed
	rivals    map[string]Message // others who asked meanwhile, by round

	// Used by RequestEdit alone.
	asked lock.Holder // the page that was asked last
	count int         // how many were asked
	far   bool        // that page is on another machine
	at    time.Time   // when that page was asked, or answered last
}

func (a *ask) hear(m Message) {
	select {
	case a.answers <- m:
	default:
	}
}

// withdraw ends the request of this page for the lock, because the page is put to sleep or
// closed.
func (s *Saver) withdraw() {
	if s.asking != nil {
		s.post(Message{Kind: EditCancelled, Round: s.asking.round})
		close(s.asking.withdrawn)
		s.asking = nil
	}
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
// A page that becomes the editor meanwhile is asked as well, and has as much time to answer.
// A page that is put to sleep, closed or whose ctx ends does not become the editor by its
// request any more.
//
// Errors match ErrHandoverRefused, ErrHandoverBusy (another page asked before),
// ErrHandoverNoAnswer, ErrReadOnly (granted, but the lock could not be taken),
// ErrAborted with the cause of ctx, ErrDisabled or ErrDisposed. None takes longer than
// Grace and nine seconds, and some twenty more for each of at most four pages that answer.
func (s *Saver) RequestEdit(ctx context.Context, opts EditOptions) error {
	opts.Grace = cmp.Or(opts.Grace, DefaultGrace)
	a := &ask{round: lock.NewID(), force: opts.Force, grace: opts.Grace, answers: make(chan Message, 16), withdrawn: make(chan struct{}),
		rivals: make(map[string]Message)}
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
			if s.holder != nil {
				a.asked = *s.holder
			}
			s.request(a)
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
		return errSuspended
	case ended:
		return &Error{Code: CodeHandoverBusy, Detail: "this page has asked already"}
	}
	defer s.do(func() {
		if s.asking == a {
			s.asking = nil
		}
	})
	if s.config.NoStandby {
		// Nobody would answer if nobody held it.
		if done, err := s.tryFree(ctx, a); done {
			return err
		}
		defer s.queueFar()()
	}
	err := s.elsewhere(ctx)
	if err == nil {
		err = s.negotiate(ctx, a, opts, verdict)
	}
	if err != nil {
		s.post(Message{Kind: EditCancelled, Round: a.round})
	}
	return err
}

// elsewhere returns an error where no page edits this document, but one edits a document around or below it: only there can
// it be asked, and force does not reach there.
func (s *Saver) elsewhere(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, lateRollCall)
	defer stop()
	holders, _, err := s.config.Locks.Inspect(ctx)
	if err != nil {
		return nil // the page that edits is asked, whoever it is
	}
	own, around := lock.Name("", s.config.Lock.Path), ""
	for _, h := range holders {
		if len(h.Paths) != 1 || h.OwnerID == s.config.Locks.OwnerID() || !bars(h, s.config.Lock.Path) {
			continue
		}
		if lock.Name("", h.Paths[0]) == own {
			return nil
		}
		around = cmp.Or(h.OwnerName, "another page") + ` edits "` + strings.Join(h.Paths[0], "/") + `"`
	}
	if around == "" {
		return nil
	}
	return &Error{Code: CodeHandoverRefused, Detail: around + ", around or below this document; call requestEdit there, or wait until that ends"}
}

var errSuspended = &Error{Code: CodeReadOnly, Detail: "this page is suspended; resume it first"}

// request posts the request, to whoever edits.
func (s *Saver) request(a *ask) {
	a.count++
	a.at = time.Now()
	s.post(Message{Kind: EditRequest, Round: a.round, Force: a.force, Grace: a.grace})
}

// tryFree takes the lock where nobody holds it.
func (s *Saver) tryFree(ctx context.Context, a *ask) (done bool, err error) {
	if s.whoEdits(ctx, rollCall) != nil {
		return false, nil
	}
	err = s.take(ctx, a, false)
	return err == nil || !errors.Is(err, ErrReadOnly) || errors.Is(err, context.DeadlineExceeded), err
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
			if done, err := s.hearAnswer(ctx, a, m, opts.Grace, timer); done {
				return err
			}
		case <-timer.C:
			if s.askNext(ctx, a) {
				timer.Reset(opts.Grace)
				continue
			}
			if err := s.elsewhere(ctx); err != nil { // that page was too busy to say so before
				return err
			}
			if !opts.Force || a.far {
				return &Error{Code: CodeHandoverNoAnswer, Detail: "the page that edits does not answer; force takes the lock from it"}
			}
			if s.outranked(a) {
				return &Error{Code: CodeHandoverBusy, Detail: "another page takes it over at this moment"}
			}
			return s.take(ctx, a, true)
		case <-ctx.Done():
			return &Error{Code: CodeAborted, Detail: "the caller gave up", Err: context.Cause(ctx)}
		case <-a.withdrawn:
			return errSuspended
		case <-s.gone:
			return s.over()
		}
	}
}

// hearAnswer deals with an answer, and reports whether that ends the request.
func (s *Saver) hearAnswer(ctx context.Context, a *ask, m Message, grace time.Duration, timer *time.Timer) (done bool, err error) {
	switch m.Kind {
	case EditAccepted:
		a.at, a.far = time.Now(), m.Far
		timer.Reset(vetoLimit + handoverLimit + grace)
	case EditSilent:
		return true, &Error{Code: CodeHandoverNoAnswer, Detail: m.Detail}
	case EditRefused:
		return true, &Error{Code: CodeHandoverRefused, Detail: m.Detail}
	case EditBusy:
		return true, &Error{Code: CodeHandoverBusy, Detail: "another page asked before"}
	case EditGranted:
		if time.Since(a.at) <= vetoLimit+2*handoverLimit {
			return true, s.take(ctx, a, true)
		}
		// This page slept, and the offer is over: the other one edits again.
		if a.count < asks {
			s.do(func() { s.request(a) })
			timer.Reset(grace)
		}
	case EditLeft:
		if s.config.NoStandby { // else its turn comes by itself, or that of another one, which is asked
			return s.tryFree(ctx, a)
		}
	case Edits:
		if a.count < asks {
			a.asked = m.Holder
			s.do(func() { s.request(a) })
			timer.Reset(grace)
		}
	}
	return false, nil
}

// askNext asks the page that edits now, where that is not the one that was asked and did not
// answer. One that says nothing of itself is the one that was asked: an editor that has just
// begun says so.
func (s *Saver) askNext(ctx context.Context, a *ask) bool {
	h := s.whoEdits(ctx, lateRollCall)
	if h == nil || h.LeaseID == "" || a.count >= asks ||
		h.LeaseID == a.asked.LeaseID || a.asked.LeaseID == "" && h.OwnerID == a.asked.OwnerID {
		return false
	}
	a.asked = *h
	s.do(func() { s.request(a) })
	return true
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

// take takes the lock, by force from any holder, and waits until this page edits.
// If the caller ends ctx before, this page does not become the editor: it gives back what it has. If the store does not answer,
// take returns, and the page edits as soon as the store answers.
func (s *Saver) take(caller context.Context, a *ask, steal bool) error {
	ctx, stop := context.WithTimeout(caller, takeLimit)
	defer stop()
	var verdict chan struct{}
	var term int64
	already, withdrawn := false, false
	if !s.do(func() {
		withdrawn, already, verdict = s.asking != a, s.role == editing, s.verdict
		if withdrawn || already || s.role == loading || s.role == leaving {
			return // its turn came by itself
		}
		s.stop()
		s.enter(starting)
		term = s.term
		if !steal {
			s.emitPhase(s.phase())
			s.acquireFree()
			return
		}
		opts := s.config.Lock
		opts.Steal, opts.IfAvailable, opts.Timeout = true, false, handoverLimit
		s.acquire(opts)
	}) {
		return s.over()
	}
	switch {
	case withdrawn:
		return errSuspended
	case already:
		return nil
	}
	err := s.await(ctx, verdict)
	s.do(func() {
		switch {
		case s.role == editing:
			err = nil
		case err == nil:
			err = s.refusal()
		case caller.Err() == nil && ctx.Err() != nil:
			err = late(ctx, CodeReadOnly, theStore)
		case term != 0 && (s.term == term || s.role == loading && s.term == term+1):
			s.stepBack(s.lastErr, lateRollCall) // the page that was robbed is in the queue by then
		}
	})
	return err
}
