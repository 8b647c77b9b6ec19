package autosave

import (
	"context"
	"errors"
	"time"
)

// steal takes the lock, and reports whether that ends the request. The attempt may have to wait for a lock around the document. If another page
// becomes the editor meanwhile, that one is asked.
func (r *asker) steal(ctx context.Context) (done bool, err error) {
	err = r.take(ctx, true)
	var moved *movedError
	if !errors.As(err, &moved) {
		return true, err
	}
	r.forced = false
	r.promises.moved(moved.Message)
	return r.again(moved.Holder.LeaseID, r.own.grace)
}

// movedError is the message of a page that has become the editor while another one tried to take the lock.
type movedError struct{ Message }

func (*movedError) Error() string { return "another page edits" }

// take takes the lock, by force from any holder, and waits until this page edits. If the caller ends ctx before, this
// page does not become the editor and gives the lock back. It waits for the lock no longer than an offer is valid. If the store does not
// answer, take returns, and the page edits as soon as the store answers.
func (r *asker) take(caller context.Context, steal bool) error {
	ctx, stop := context.WithTimeout(caller, takeLimit)
	defer stop()
	var verdict chan struct{}
	var term int64
	already, withdrawn := false, false
	if !r.do(func() {
		withdrawn, already, verdict = r.asking != r.own, r.role == editing, r.verdict
		if withdrawn || already || r.role == loading || r.role == leaving || r.role == starting && (!steal || r.leaseDone != nil) {
			return // its turn came without a handover, or may come: this page verifies its lease, or tries to acquire the lock already
		}
		r.stop()
		r.enter(starting)
		term = r.term
		if !steal {
			r.acquireFree()
			return
		}
		opts := r.config.Lock
		opts.Steal, opts.IfAvailable, opts.Timeout = true, false, handoverLimit
		if !r.forced {
			opts.Timeout = max(1, handoverLimit-time.Since(r.at)) // at least the shortest one: this page may have slept just now
		}
		if r.config.document() != "" {
			r.repeat() // pages that wait around it since the question let this one pass, too
		}
		r.acquire(opts)
	}) {
		return r.over()
	}
	switch {
	case withdrawn:
		return errSuspended
	case already:
		return nil
	}
	var err error
	if steal && term != 0 {
		err = r.awaitTaken(ctx, verdict, term)
	} else {
		err = r.await(ctx, verdict)
	}
	r.do(func() { err = r.taken(caller, ctx, term, err) })
	return err
}

// awaitTaken is await. It fails with *[movedError] if another page edits before this one has the lock.
func (r *asker) awaitTaken(ctx context.Context, verdict chan struct{}, term int64) error {
	for {
		select {
		case m := <-r.own.answers:
			waits := false
			if r.do(func() { waits = r.term == term }); waits && m.Kind == Edits {
				return &movedError{m}
			}
		case <-verdict:
			return nil
		case <-ctx.Done():
			return r.await(ctx, verdict)
		case <-r.gone:
			return r.over()
		}
	}
}

// taken returns the result of an attempt to take the lock, and ends the attempt when the caller or its time has ended. A page that has
// the lock loads its content if only the time has ended.
func (r *asker) taken(caller, ctx context.Context, term int64, err error) error {
	switch {
	case r.role == editing:
		return nil
	case err == nil:
		return r.refusal()
	case caller.Err() != nil, errors.As(err, new(*movedError)):
	case r.role == starting:
		err = &Error{Code: CodeReadOnly, Detail: "the lock was not granted in time: another page holds or awaits a part of it", Err: context.Cause(ctx)}
	default:
		return late(ctx, CodeReadOnly, theStore)
	}
	if term != 0 && (r.term == term || r.role == loading && r.term == term+1) {
		r.stepBack(r.retries.lastErr, lateInspectLimit) // the page that lost the lock is in the queue by then
	}
	return err
}
