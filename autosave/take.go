package autosave

import (
	"context"
	"errors"
	"time"
)

// steal takes the lock from its holder, and reports whether that ends the request. The attempt may have to wait for a lock around the document.
// If another page becomes the editor meanwhile, steal asks that page.
func (r *asker) steal(ctx context.Context) (done bool, err error) {
	err = r.take(ctx, true)
	var changed *editorChangedError
	if !errors.As(err, &changed) {
		return true, err
	}
	r.forced = false
	r.promises.editorChanged(changed.Message)
	return r.askAgain(changed.Holder.LeaseID, r.own.grace)
}

// editorChangedError is the message of a page that has become the editor while another one tried to take the lock.
type editorChangedError struct{ Message }

func (*editorChangedError) Error() string { return "another page edits" }

// take acquires the lock, and waits until this page edits. With steal it takes the lock from any holder; otherwise it acquires a free lock
// only. If the caller ends its context before, this page does not become the editor and releases the lock. take waits for the lock no longer
// than an offer is valid. If the store does not answer, take returns, and the page edits as soon as the store answers.
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
		return r.whyEnded()
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
	if !r.do(func() { err = r.taken(caller, ctx, term, err) }) {
		return r.whyEnded()
	}
	return err
}

// awaitTaken waits like await, but it fails with *[editorChangedError] if another page edits before this one has the lock.
func (r *asker) awaitTaken(ctx context.Context, verdict chan struct{}, term int64) error {
	for {
		select {
		case m := <-r.own.answers:
			waits := false
			if r.do(func() { waits = r.term == term }); waits && m.Kind == Edits {
				return &editorChangedError{m}
			}
		case <-verdict:
			return nil
		case <-ctx.Done():
			return r.await(ctx, verdict)
		case <-r.gone:
			return r.whyEnded()
		}
	}
}

// taken returns the result of an attempt to take the lock. If err says that the caller or the time has ended, taken also ends the attempt.
// But if only the time has ended and this page has the lock, the page continues to load its content.
func (r *asker) taken(caller, ctx context.Context, term int64, err error) error {
	switch {
	case r.role == editing:
		return nil
	case err == nil:
		return r.refusal()
	case caller.Err() != nil, errors.As(err, new(*editorChangedError)):
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
