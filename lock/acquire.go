package lock

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/internal/wait"
)

// acquisition is one call of [Manager.Acquire].
type acquisition struct {
	m         *Manager
	opts      *AcquireOptions
	backends  []*Backend
	within    *heldLease // the enclosing lease, or nil
	end       context.CancelCauseFunc
	retry     int                  // number of the attempt
	delays    func() time.Duration // before the next one
	degraded  bool                 // fallback-degraded was sent
	warned    bool                 // self-wait was sent
	guardLock Grant                // for a takeover, while this acquisition holds it
	endSteal  func()               // ends a wait that began with a steal; or nil
	steal     bool                 // the next request steals
	fallback  bool                 // this backend is not the first one
}

var (
	errTimeLimit = errors.New("the time limit passed")
	errNoAnswer  = errors.New("no answer")
)

func newAcquisition(m *Manager, opts *AcquireOptions, within *heldLease) *acquisition {
	a := &acquisition{m: m, opts: opts, within: within, steal: opts.Steal}
	if within == nil {
		a.backends = preferring(opts.PreferredStrategy, m.config.Backends)
	} else { // names of the enclosing lease count only under its own strategy
		a.backends = []*Backend{within.target.backend}
	}
	return a
}

// preferring returns the backends with those of the strategy first.
func preferring(s Strategy, backends []Backend) []*Backend {
	var first, rest []*Backend
	for i := range backends {
		b := &backends[i]
		if b.Strategy == s {
			first = append(first, b)
		} else {
			rest = append(rest, b)
		}
	}
	return append(first, rest...)
}

func (a *acquisition) run(ctx context.Context) (Lease, *Error) {
	ctx, stop := a.bounded(ctx)
	defer stop()
	for i, b := range a.backends {
		a.fallback = i > 0 || a.within != nil && a.within.snapshot().Fallback
		lease, err := a.acquire(ctx, b)
		if err == nil {
			return lease, nil
		}
		if last := i == len(a.backends)-1; last || !errors.Is(err, ErrWebLockUnsupported) {
			a.m.fail(a.opts, err, ReasonAcquireFailed)
			return Lease{}, err
		}
		a.m.emit(b.Resource, a.opts.LeaseID, Event{Type: EventError, Operation: OpAcquire, Err: err})
	}
	panic("unreachable: a manager has at least one backend")
}

// bounded ends the acquisition at its time limit and when the manager is closed.
func (a *acquisition) bounded(ctx context.Context) (context.Context, func()) {
	limit, cause := a.opts.Timeout, errTimeLimit
	if limit == NoWait || a.opts.IfAvailable && limit > answerLimit {
		limit, cause = answerLimit, errNoAnswer
	}
	ctx, stopTimer := context.WithTimeoutCause(ctx, limit, cause)
	ctx, a.end = context.WithCancelCause(ctx)
	stopLife := context.AfterFunc(a.m.life, func() { a.end(context.Cause(a.m.life)) })
	stopWithin := func() bool { return true }
	if a.within != nil {
		stopWithin = context.AfterFunc(a.within.life, func() { a.end(errEnclosingEnded) })
	}
	return ctx, func() { stopLife(); stopWithin(); a.end(nil); stopTimer() }
}

func (a *acquisition) acquire(ctx context.Context, b *Backend) (Lease, *Error) {
	defer a.endTakeOver()
	t, failed := plan(b, a.opts, a.within)
	if failed != nil {
		return Lease{}, failed
	}
	a.retry, a.delays = 0, a.opts.Backoff.Delays()
	for {
		began := a.m.config.Clock.Now()
		grant, err := a.granted(ctx, t)
		if err == nil && ctx.Err() != nil {
			// The grant arrived at the same moment as the end: give it back.
			a.m.tidy(ctx, func() { a.m.giveBack(grant.grant) })
			err = context.Cause(ctx)
		}
		if err != nil {
			return Lease{}, a.failure(ctx, t, err)
		}
		lease, err := a.hold(ctx, t, grant, began)
		if err == nil {
			return lease, nil
		}
		if err := a.again(ctx, t, err); err != nil {
			return Lease{}, a.failure(ctx, t, err)
		}
	}
}

// again waits for the next attempt after a grant that did not become a lease because of err, if that reason may pass. If there is
// no further attempt, it returns err, or the error that ended the wait.
func (a *acquisition) again(ctx context.Context, t *target, err error) error {
	switch passing := denied(err) || errors.Is(err, errNoAnswer); {
	case !passing || a.opts.IfAvailable:
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case a.opts.Timeout == NoWait:
		return noWait(err)
	}
	if a.retry++; a.opts.Backoff.spent(a.retry) {
		return a.exhausted(err)
	}
	a.endTakeOver()
	a.steal = false // only the first holder is stolen from, not its successor
	delay := a.delays()
	a.denied(t, a.failure(ctx, t, err))
	a.emit(t, Event{Type: EventWaiting, Retry: a.retry, Delay: delay})
	return wait.For(ctx, delay)
}

// granted makes an attempt. If the attempt is denied, it keeps a place in the queue until the grant arrives, the
// retries are spent or ctx ends.
func (a *acquisition) granted(ctx context.Context, t *target) (*granted, error) {
	a.attempt(t)
	r := a.arbitration(t)
	r.ifAvailable = !a.steal
	if a.steal { // it may wait for another machine or an ancestor, and others may then consider it frozen
		a.endSteal = a.waits(ctx, r)
	}
	first := a.m.request(ctx, r.request)
	defer first.abandon()
	grant, err := first.wait(ctx)
	if err == nil || !denied(err) || a.opts.IfAvailable {
		a.m.holdsLocal(a, err == nil)
		return grant, err
	}
	a.endTakeOver()
	if a.opts.Timeout == NoWait {
		return nil, noWait(err)
	}

	a.steal = false // its lock was stolen while it waited for another machine; it does not steal it back
	r = a.arbitration(t)
	defer a.waits(ctx, r)()
	queued := a.m.request(ctx, r.request)
	defer func() { queued.abandon() }()
	watching, stop := context.WithCancel(ctx)
	defer stop()
	frozen := a.watch(watching, t)
	for a.retry++; !a.opts.Backoff.spent(a.retry); a.retry++ {
		a.denied(t, err)
		grant, err, settled := a.await(ctx, t, queued, frozen, a.delays())
		if settled && errors.Is(err, ErrDenied) && ctx.Err() == nil {
			// Another client stole the lock of this machine while this one waited for another machine. It joins the end
			// of the queue.
			queued.abandon()
			a.m.holdsLocal(a, false)
			a.endTakeOver()
			a.steal = false
			queued, settled = a.m.request(ctx, r.request), false
		}
		if settled {
			return grant, err
		}
	}
	return nil, a.exhausted(err)
}

func noWait(err error) error { return spent(err, "another owner holds it and timeoutMs is 0") }

func (a *acquisition) exhausted(err error) error {
	return spent(err, "another owner still holds it after "+strconv.Itoa(a.opts.Backoff.MaxRetries)+
		" retries; try again later, or set backoff.maxRetries to 0 to wait for timeoutMs")
}

// spent returns the final error of an acquisition whose retries were all denied with err.
func spent(err error, detail string) error {
	if errors.Is(err, ErrTimeout) || errors.Is(err, errNoAnswer) {
		return err // no holder is known
	}
	return &Error{Code: CodeTimeout, Detail: detail}
}

// await waits in the queue for one delay. settled reports whether the request was answered.
func (a *acquisition) await(ctx context.Context, t *target, queued *pendingRequest, frozen <-chan suspect, delay time.Duration) (grant *granted, err error, settled bool) {
	a.emit(t, Event{Type: EventWaiting, Retry: a.retry, Delay: delay})
	pause := time.NewTimer(delay)
	defer pause.Stop()
	for {
		select {
		case <-pause.C:
			a.attempt(t)
			select {
			case answer := <-queued.answers: // at the same moment: there is no denial to report
				return answer.grant, answer.err, true
			default:
				return nil, nil, false
			}
		case answer := <-queued.answers:
			if answer.err == nil {
				a.attempt(t)
			}
			return answer.grant, answer.err, true
		case holder := <-frozen:
			if grant, err, ok := a.takeOver(ctx, t, queued, holder); ok {
				if err == nil {
					a.attempt(t)
				}
				return grant, err, true
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx), true
		}
	}
}

// arbitration returns a request for the target, which waits and steals only if the acquisition may steal now.
func (a *acquisition) arbitration(t *target) *arbitration {
	return &arbitration{target: t, steal: a.steal, run: a.m.work.Go, onLocal: func() { a.m.holdsLocal(a, true) }}
}

func (a *acquisition) emit(t *target, e Event) { a.m.emit(t.resource, a.opts.LeaseID, e) }

func (a *acquisition) attempt(t *target) {
	a.emit(t, Event{Type: EventAttempt, Strategy: t.backend.Strategy, Retry: a.retry})
}

// denied sends the event for a lock that another client holds.
func (a *acquisition) denied(t *target, err error) {
	e := asError(err, CodeDenied, OpAcquire, t.resource)
	a.emit(t, Event{Type: EventError, Operation: OpAcquire, Err: e})
	if e.Code == CodeFallbackConflict && !a.degraded {
		a.degraded = true
		a.emit(t, Event{Type: EventWarning, Warning: WarnFallbackDegraded, Detail: e.Detail})
	}
	if a.warned {
		return
	}
	if own := a.m.selfWait(a, t); own != nil {
		a.warned = true
		lease := own.snapshot()
		a.emit(t, Event{Type: EventWarning, Warning: WarnSelfWait,
			Detail: "this page holds " + quote(lease.Resource) + " itself, in lease " + lease.ID + "; release it, or give it as within"})
	}
}

// denied reports whether waiting may help: another client holds the lock, or a server did not answer.
func denied(err error) bool {
	return errors.Is(err, ErrDenied) || errors.Is(err, ErrFallbackConflict) || errors.Is(err, ErrTimeout)
}

// failure maps the end of the acquisition to an error of this package.
func (a *acquisition) failure(ctx context.Context, t *target, err error) *Error {
	e := &Error{Operation: OpAcquire, Resource: t.resource, Err: err}
	var own *Error
	switch {
	case errors.Is(err, ErrDeadlock):
		return asError(err, CodeDeadlock, OpAcquire, t.resource)
	case errors.Is(err, errNoAnswer):
		e.Code, e.Detail = CodeTimeout, "no answer came in time; nothing is known of who holds it"
	case ctx.Err() == nil, errors.As(err, &own) && !errors.Is(err, context.Cause(ctx)):
		return asError(err, CodeDenied, OpAcquire, t.resource)
	case errors.Is(err, errTimeLimit):
		e.Code, e.Detail = CodeTimeout, "not granted within timeoutMs ("+millis(a.opts.Timeout)+")"
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		e.Code, e.Detail = CodeTimeout, "not granted before the caller's deadline"
	default:
		e.Code, e.Detail = CodeAborted, "the caller gave up waiting"
		if errors.Is(err, errClosed) {
			e.Detail = "Holdfast was closed meanwhile"
		} else if errors.Is(err, errEnclosingEnded) {
			e.Detail = errEnclosingEnded.Error()
		}
	}
	return e
}
