package autosave

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/lock"
)

// asks is how often a page that wants to edit asks while one page after the other becomes the editor.
const asks = 4

// ask is a handover on the side of the page that wants to edit. It never acquires the lock after it is withdrawn.
type ask struct {
	round     string
	force     bool
	grace     time.Duration
	answers   chan Message       // has room for every possible answer
	withdrawn chan struct{}      // closed when the page is suspended
	rivals    map[string]Message // other pages that asked meanwhile, by round; nil: they are turned away
	refused   bool               // the server has refused this page, which does not wait for its turn

	// Used only by RequestEdit.
	pages  map[string]promise // the answers of the editors, by lease id; "" for editors that are not known yet
	count  int                // how often this page has asked
	remote bool               // an editor on another machine has accepted
	at     time.Time          // when this page last asked
	forced bool               // it takes the lock without an offer
}

func (a *ask) receive(m Message) {
	select {
	case a.answers <- m:
	default:
	}
}

// stillOffers reports whether the editor that has just answered still offers the lock. It may be closed by now, and another page may edit that
// was not asked. If the look shows a page that was asked, that one edited before: its lock excludes the one that is offered. The look is short,
// unless nobody edits or the editor is slow to give its name.
func (s *Saver) stillOffers(ctx context.Context, a *ask) bool {
	for _, limit := range []time.Duration{inspectLimit, lateInspectLimit} {
		editors := s.config.editors(ctx, limit)
		if slices.ContainsFunc(editors, func(h lock.Holder) bool { _, asked := a.pages[h.LeaseID]; return h.LeaseID != "" && !asked }) {
			return false
		}
		if len(editors) > 0 && editors[0].LeaseID != "" { // those without a name come first
			break
		}
	}
	return len(a.answers) == 0
}

// EditOptions configure a request for the lock.
type EditOptions struct {
	// Force takes the lock from a holder that does not answer. It never takes the lock from a holder that refuses.
	Force bool
	Grace time.Duration // how long to wait for an answer; default 5 s
}

// RequestEdit asks the page that edits to save and hand over. It returns when this page edits and the listener was
// given the last saved content. It returns at once if this page edits already.
//
// Pages that edit a document around or below this one are asked in the same way, all of them at once. This page takes
// the lock when each of them has offered it.
//
// A page that becomes the editor meanwhile is asked as well, and has as much time to answer. A page that is suspended
// or closed, or whose ctx ends, no longer becomes the editor by its request.
//
// Errors match ErrHandoverRefused, ErrHandoverBusy (another page asked before),
// ErrHandoverNoAnswer, ErrReadOnly (granted, but the lock could not be taken),
// ErrAborted with the cause of ctx, ErrDisabled or ErrDisposed. None takes longer than
// Grace and nine seconds, and some twenty more for each of at most four pages that answer.
func (s *Saver) RequestEdit(ctx context.Context, opts EditOptions) error {
	opts.Grace = cmp.Or(opts.Grace, DefaultGrace)
	a := &ask{round: lock.NewID(), force: opts.Force, grace: opts.Grace, answers: make(chan Message, 16), withdrawn: make(chan struct{}),
		rivals: make(map[string]Message), pages: make(map[string]promise)}
	verdict, err := s.beginAsk(ctx, a)
	if verdict == nil {
		return err
	}
	defer s.do(func() {
		if s.asking == a {
			s.asking = nil
		}
	})
	if s.config.NoStandby || a.refused {
		// Nobody would answer if nobody held it.
		if done, err := s.tryFree(ctx, a); done {
			return err
		}
		defer s.queueRemotely(ctx)()
	}
	err = s.negotiate(ctx, a, verdict)
	if err != nil {
		s.post(Message{Kind: EditCancelled, Round: a.round})
	}
	return err
}

// beginAsk asks the page that edits, as soon as the next holder of a lock that this page gives away is known. It returns
// the verdict to wait for, or nil if there is none: by an error, or because this page edits.
func (s *Saver) beginAsk(ctx context.Context, a *ask) (verdict chan struct{}, err error) {
	var at role
	begin := func() {
		at, verdict = s.role, s.verdict
		switch {
		case at == editing, at == suspended, at == leaving:
		case s.asking != nil:
			at = ended
		default:
			s.asking = a
			a.refused = errors.Is(s.retries.lastErr, lock.ErrNotAllowed)
			a.give("", a.grace)
			if s.holder != nil {
				a.give(s.holder.LeaseID, a.grace)
			}
			s.request(a)
		}
	}
	for at = leaving; at == leaving; {
		if !s.do(begin) {
			return nil, s.over()
		}
		if at == leaving {
			if err := s.await(ctx, verdict); err != nil {
				return nil, err
			}
		}
	}
	switch at {
	case editing:
		return nil, nil
	case suspended:
		return nil, errSuspended
	case ended:
		return nil, &Error{Code: CodeHandoverBusy, Detail: "this page has asked already"}
	}
	return verdict, nil
}

var errSuspended = &Error{Code: CodeReadOnly, Detail: "this page is suspended; resume it first"}

// request asks all editors.
func (s *Saver) request(a *ask) {
	a.count++
	a.at = time.Now()
	s.repeat(a)
}

// repeat sends the last question again, for pages that did not hear it.
func (s *Saver) repeat(a *ask) {
	s.post(Message{Kind: EditRequest, Round: a.round, Force: a.force, Grace: a.grace, Question: a.count})
}

// again asks once more, and gives the editor with that lease time to answer. It reports whether the request ends because this page has asked
// too often: force takes nothing from an editor that was not asked, or that answers.
func (s *Saver) again(a *ask, lease string, pause time.Duration, timer *time.Timer) (done bool, err error) {
	if a.count == asks {
		return true, &Error{Code: CodeHandoverNoAnswer, Detail: "one page after the other edits, or answers too late"}
	}
	if lease != "" {
		a.give(lease, pause)
	}
	s.do(func() { s.request(a) })
	timer.Reset(pause)
	return false, nil
}

// tryFree takes the lock if nobody holds it.
func (s *Saver) tryFree(ctx context.Context, a *ask) (done bool, err error) {
	if s.config.whoEdits(ctx, inspectLimit) != nil {
		return false, nil
	}
	err = s.take(ctx, a, false)
	return !errors.Is(err, ErrReadOnly) || errors.Is(err, context.DeadlineExceeded), err
}

func (s *Saver) negotiate(ctx context.Context, a *ask, verdict chan struct{}) error {
	timer := time.NewTimer(a.grace)
	defer timer.Stop()
	for {
		select {
		case <-verdict: // its turn came without a handover
			if !s.ReadOnly() {
				return nil
			}
			s.do(func() { verdict = s.verdict })
		case m := <-a.answers:
			if done, err := s.hearAnswer(ctx, a, m, timer); done {
				return err
			}
		case <-timer.C:
			if a.force && s.outranked(a) { // checked before it looks for editors: the other page may edit by then, and was not asked
				return &Error{Code: CodeHandoverBusy, Detail: "another page takes it over at this moment"}
			}
			if done, err := s.takeOffered(ctx, a, timer); done {
				return err
			}
		case <-ctx.Done():
			return &Error{Code: CodeAborted, Detail: "the caller gave up", Err: context.Cause(ctx)}
		case <-a.withdrawn:
			return errSuspended
		case <-s.gone:
			return s.over()
		}
	}
}

// hearAnswer handles an answer, and reports whether it ends the request.
func (s *Saver) hearAnswer(ctx context.Context, a *ask, m Message, timer *time.Timer) (done bool, err error) {
	switch m.Kind {
	case EditAccepted:
		limit := vetoLimit + handoverLimit + a.grace
		a.remote = m.Remote
		a.give(m.Detail, limit)
		timer.Reset(limit)
	case EditSilent:
		return true, &Error{Code: CodeHandoverNoAnswer, Detail: m.Detail}
	case EditRefused:
		return true, &Error{Code: CodeHandoverRefused, Detail: m.Detail}
	case EditBusy:
		return true, &Error{Code: CodeHandoverBusy, Detail: "another page asked before"}
	case EditGranted:
		if m.Question > 0 && m.Question != a.count {
			return false, nil // an offer for a former question may be over; the page answers the last one, too
		}
		until := a.at.Add(offerLimit)
		if time.Until(until) <= 0 {
			// The offer may have expired while this page slept: ask again. A page that still offers the lock repeats its offer.
			return s.again(a, m.Detail, a.grace, timer)
		}
		a.offers(m, until)
		if len(m.Document) <= len(s.config.document()) && s.stillOffers(ctx, a) && time.Until(until) > 0 { // otherwise there may be more editors
			return s.steal(ctx, a, timer)
		}
		return s.takeOffered(ctx, a, timer)
	case EditLeft:
		a.moved(m)
		if s.config.NoStandby { // otherwise its turn comes without a handover, or the turn of another page, which is then asked
			return s.tryFree(ctx, a)
		}
	case Edits:
		a.moved(m)
		return s.again(a, m.Holder.LeaseID, a.grace, timer)
	}
	return false, nil
}

// takeOffered takes the lock if all editors have offered it or, by force, have used up their time. It reports whether
// that ends the request. Otherwise it sets the timer to the end of their time.
func (s *Saver) takeOffered(ctx context.Context, a *ask, timer *time.Timer) (done bool, err error) {
	editors := s.config.editors(ctx, lateInspectLimit)
	if len(a.answers) > 0 { // hear them first: this page may have slept until now
		timer.Reset(time.Millisecond)
		return false, nil
	}
	pause, offered, again := a.weigh(editors)
	switch {
	case again:
		return s.again(a, "", pause, timer)
	case pause > 0:
		timer.Reset(pause)
		return false, nil
	case offered:
	case !a.force || a.remote:
		if s.config.NoStandby && s.config.remoteStore() == nil { // otherwise this page is in the queue
			if done, err := s.tryFree(ctx, a); done {
				return true, err
			}
		}
		return true, &Error{Code: CodeHandoverNoAnswer, Detail: "the page that edits does not answer; force takes the lock from it"}
	}
	a.forced = !offered
	return s.steal(ctx, a, timer)
}

// outranked reports whether another page is about to take the lock by force as well. The page with the lowest round
// takes it.
func (s *Saver) outranked(a *ask) (yes bool) {
	s.do(func() {
		for round, m := range a.rivals {
			yes = yes || m.Force && round < a.round
		}
	})
	return yes
}
