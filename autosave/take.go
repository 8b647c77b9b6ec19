package autosave

import (
	"context"
	"errors"
	"time"
)

// steal takes the lock, and reports whether that ends the request. The attempt may have to wait for a lock around the document. If another page
// becomes the editor meanwhile, that one is asked.
func (s *Saver) steal(ctx context.Context, a *ask, timer *time.Timer) (done bool, err error) {
	err = s.take(ctx, a, true)
	var moved *movedError
	if !errors.As(err, &moved) {
		return true, err
	}
	a.forced = false
	a.moved(moved.Message)
	return s.again(a, moved.Holder.LeaseID, a.grace, timer)
}

// movedError is the message of a page that has become the editor while another one tried to take the lock.
type movedError struct{ Message }

func (*movedError) Error() string { return "another page edits" }

// take takes the lock, by force from any holder, and waits until this page edits. If the caller ends ctx before, this
// page does not become the editor and gives the lock back. It waits for the lock no longer than an offer is valid. If the store does not
// answer, take returns, and the page edits as soon as the store answers.
func (s *Saver) take(caller context.Context, a *ask, steal bool) error {
	ctx, stop := context.WithTimeout(caller, takeLimit)
	defer stop()
	var verdict chan struct{}
	var term int64
	already, withdrawn := false, false
	if !s.do(func() {
		withdrawn, already, verdict = s.asking != a, s.role == editing, s.verdict
		if withdrawn || already || s.role == loading || s.role == leaving || s.role == starting && (!steal || s.leaseDone != nil) {
			return // its turn came without a handover, or may come: this page verifies its lease, or tries to acquire the lock already
		}
		s.stop()
		s.enter(starting)
		term = s.term
		if !steal {
			s.acquireFree()
			return
		}
		opts := s.config.Lock
		opts.Steal, opts.IfAvailable, opts.Timeout = true, false, handoverLimit
		if !a.forced {
			opts.Timeout = max(1, handoverLimit-time.Since(a.at)) // at least the shortest one: this page may have slept just now
		}
		if s.config.document() != "" {
			s.repeat(a) // pages that wait around it since the question let this one pass, too
		}
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
	var err error
	if steal && term != 0 {
		err = s.awaitTaken(ctx, a, verdict, term)
	} else {
		err = s.await(ctx, verdict)
	}
	s.do(func() { err = s.taken(caller, ctx, term, err) })
	return err
}

// awaitTaken is await. It fails with *[movedError] if another page edits before this one has the lock.
func (s *Saver) awaitTaken(ctx context.Context, a *ask, verdict chan struct{}, term int64) error {
	for {
		select {
		case m := <-a.answers:
			waits := false
			if s.do(func() { waits = s.term == term }); waits && m.Kind == Edits {
				return &movedError{m}
			}
		case <-verdict:
			return nil
		case <-ctx.Done():
			return s.await(ctx, verdict)
		case <-s.gone:
			return s.over()
		}
	}
}

// taken returns the result of an attempt to take the lock, and ends the attempt when the caller or its time has ended. A page that has
// the lock loads its content if only the time has ended.
func (s *Saver) taken(caller, ctx context.Context, term int64, err error) error {
	switch {
	case s.role == editing:
		return nil
	case err == nil:
		return s.refusal()
	case caller.Err() != nil, errors.As(err, new(*movedError)):
	case s.role == starting:
		err = &Error{Code: CodeReadOnly, Detail: "the lock was not granted in time: another page holds or awaits a part of it", Err: context.Cause(ctx)}
	default:
		return late(ctx, CodeReadOnly, theStore)
	}
	if term != 0 && (s.term == term || s.role == loading && s.term == term+1) {
		s.stepBack(s.retries.lastErr, lateInspectLimit) // the page that lost the lock is in the queue by then
	}
	return err
}
