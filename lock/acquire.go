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
	m        *Manager
	opts     AcquireOptions
	backends []Backend
	within   *heldLease // the enclosing lease, or nil
	end      context.CancelCauseFunc
	retry    int                  // number of the attempt
	delays   func() time.Duration // before the next one
	degraded bool                 // fallback-degraded was sent
	warned   bool                 // self-wait was sent
	turn     Grant                // the guard lock for a takeover, while this acquisition holds it
}

var (
	errTimeLimit = errors.New("the time limit passed")
	errNoAnswer  = errors.New("no answer")
)

func newAcquisition(m *Manager, opts AcquireOptions, within *heldLease) *acquisition {
	if within == nil {
		return &acquisition{m: m, opts: opts, backends: preferring(opts.PreferredStrategy, m.config.Backends)}
	}
	// Names of the enclosing lease count only under its own strategy.
	b := within.backend
	if s, ok := b.Locker.(*target); ok {
		b = s.b
	}
	return &acquisition{m: m, opts: opts, within: within, backends: []Backend{b}}
}

// preferring returns the backends with those of the strategy first.
func preferring(s Strategy, backends []Backend) []Backend {
	var first, rest []Backend
	for _, b := range backends {
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
		lease, err := a.acquire(ctx, b, i > 0 || a.within != nil && a.within.snapshot().Fallback)
		if err == nil {
			return lease, nil
		}
		if last := i == len(a.backends)-1; last || !errors.Is(err, ErrWebLockUnsupported) {
			a.m.fail(a.opts, err, ReasonAcquireFailed)
			return Lease{}, err
		}
		a.emit(b, Event{Type: EventError, Operation: OpAcquire, Err: err})
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

func (a *acquisition) acquire(ctx context.Context, b Backend, fallback bool) (Lease, *Error) {
	defer a.endTakeOver()
	b, failed := a.at(b)
	if failed != nil {
		return Lease{}, failed
	}
	a.retry, a.delays = 0, a.opts.Backoff.Delays()
	for {
		began := a.m.config.Clock.Now()
		grant, err := a.granted(ctx, b)
		if err == nil && ctx.Err() != nil {
			// The grant arrived at the same moment as the end: give it back.
			a.m.tidy(ctx, func() { a.m.giveBack(grant) })
			err = context.Cause(ctx)
		}
		if err != nil {
			return Lease{}, a.failure(ctx, b, err)
		}
		lease, err := a.m.hold(ctx, b, grant, began, fallback, a.opts, a.within)
		if err == nil {
			return lease, nil
		}
		if err := a.again(ctx, b, err); err != nil {
			return Lease{}, a.failure(ctx, b, err)
		}
	}
}

// again waits until the next attempt, if the grant became no lease for a reason that may pass. If there is no further
// attempt, it returns err, or the error that ended the wait.
func (a *acquisition) again(ctx context.Context, b Backend, err error) error {
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
	a.opts.Steal = false // only the first holder is stolen from, not its successor
	delay := a.delays()
	a.denied(b, a.failure(ctx, b, err))
	a.emit(b, Event{Type: EventWaiting, Retry: a.retry, Delay: delay})
	return wait.For(ctx, delay)
}

// granted makes an attempt. If the attempt is denied, it keeps a place in the queue until the grant arrives, the
// retries are spent or ctx ends.
func (a *acquisition) granted(ctx context.Context, b Backend) (Grant, error) {
	request := Request{Wants: []Want{{b.Name(), a.opts.Mode}}, IfAvailable: !a.opts.Steal, Steal: a.opts.Steal}
	a.attempt(b)
	first := a.m.request(ctx, b.Locker, request)
	defer first.abandon()
	grant, err := first.wait(ctx)
	if err == nil || !denied(err) || a.opts.IfAvailable {
		return grant, err
	}
	if a.opts.Timeout == NoWait {
		return nil, noWait(err)
	}

	defer a.m.waits(ctx, a, b)()
	a.opts.Steal = false // its lock was stolen while it waited for another machine; it does not steal it back
	request.IfAvailable, request.Steal, request.OnLocal = false, false, func() { a.m.holdsLocal(a, true) }
	queued := a.m.request(ctx, b.Locker, request)
	defer func() { queued.abandon() }()
	watching, stop := context.WithCancel(ctx)
	defer stop()
	frozen := a.watch(watching, b)
	for a.retry++; !a.opts.Backoff.spent(a.retry); a.retry++ {
		a.denied(b, err)
		grant, err, settled := a.await(ctx, b, queued, frozen, a.delays())
		if settled && errors.Is(err, ErrDenied) && ctx.Err() == nil {
			// Another client stole the lock of this machine while this one waited for another machine. It joins the end
			// of the queue.
			queued.abandon()
			a.m.holdsLocal(a, false)
			a.endTakeOver()
			a.opts.Steal = false
			queued, settled = a.m.request(ctx, b.Locker, request), false
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
func (a *acquisition) await(ctx context.Context, b Backend, queued *pendingRequest, frozen <-chan suspect, delay time.Duration) (grant Grant, err error, settled bool) {
	a.emit(b, Event{Type: EventWaiting, Retry: a.retry, Delay: delay})
	pause := time.NewTimer(delay)
	defer pause.Stop()
	for {
		select {
		case <-pause.C:
			a.attempt(b)
			select {
			case answer := <-queued.answers: // at the same moment: there is no denial to report
				return answer.grant, answer.err, true
			default:
				return nil, nil, false
			}
		case answer := <-queued.answers:
			if answer.err == nil {
				a.attempt(b)
			}
			return answer.grant, answer.err, true
		case holder := <-frozen:
			if grant, err, ok := a.takeOver(ctx, b, queued, holder); ok {
				if err == nil {
					a.attempt(b)
				}
				return grant, err, true
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx), true
		}
	}
}

func (a *acquisition) emit(b Backend, e Event) { a.m.emit(b.Resource, a.opts.LeaseID, e) }

func (a *acquisition) attempt(b Backend) {
	a.emit(b, Event{Type: EventAttempt, Strategy: b.Strategy, Retry: a.retry})
}

// denied sends the event for a lock that another client holds.
func (a *acquisition) denied(b Backend, err error) {
	e := asError(err, CodeDenied, OpAcquire, b.Resource)
	a.emit(b, Event{Type: EventError, Operation: OpAcquire, Err: e})
	if e.Code == CodeFallbackConflict && !a.degraded {
		a.degraded = true
		a.emit(b, Event{Type: EventWarning, Warning: WarnFallbackDegraded, Detail: e.Detail})
	}
	if a.warned {
		return
	}
	if own := a.m.selfWait(a, b); own != nil {
		a.warned = true
		lease := own.snapshot()
		a.emit(b, Event{Type: EventWarning, Warning: WarnSelfWait,
			Detail: "this page holds " + quote(lease.Resource) + " itself, in lease " + lease.ID + "; release it, or give it as within"})
	}
}

// denied reports whether waiting may help: another client holds the lock, or a server did not answer.
func denied(err error) bool {
	return errors.Is(err, ErrDenied) || errors.Is(err, ErrFallbackConflict) || errors.Is(err, ErrTimeout)
}

// failure maps the end of the acquisition to an error of this package.
func (a *acquisition) failure(ctx context.Context, b Backend, err error) *Error {
	e := &Error{Operation: OpAcquire, Resource: b.Resource, Err: err}
	var own *Error
	switch {
	case errors.Is(err, ErrDeadlock):
		return asError(err, CodeDeadlock, OpAcquire, b.Resource)
	case errors.Is(err, errNoAnswer):
		e.Code, e.Detail = CodeTimeout, "no answer came in time; nothing is known of who holds it"
	case ctx.Err() == nil, errors.As(err, &own) && !errors.Is(err, context.Cause(ctx)):
		return asError(err, CodeDenied, OpAcquire, b.Resource)
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
