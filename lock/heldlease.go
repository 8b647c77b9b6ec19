package lock

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/wait"
)

// heldLease is a lease from its grant to its end. One goroutine, maintain, changes it; other goroutines send it commands.
type heldLease struct {
	m       *Manager
	target  *target
	grant   Grant
	opts    *AcquireOptions
	wants   []Want     // the locks it holds itself, without those of the enclosing leases
	within  *heldLease // the lease around it, or nil
	records Records
	// unrecorded says that the records only make tokens, so that nothing can hang.
	unrecorded bool

	renewals chan chan error // asks maintain to renew now; the channel sent has capacity 1
	leave    sync.Once       // guards leaving
	leaving  chan struct{}   // closed when the owner wants to release
	gone     chan struct{}   // closed when the last event of the lease was emitted
	life     context.Context // ends with the lease; its cause says why
	end      context.CancelCauseFunc

	leaveErr error // read after gone is closed

	mu     sync.Mutex
	lease  Lease   // the present snapshot, and
	proven Instant // the last moment at which the lease was certainly held: both written by maintain

	// Used by maintain alone.
	scheduled Instant // when the next heartbeat was scheduled, and
	pause     time.Duration
	delays    func() time.Duration
	warned    bool // heartbeat-delayed was sent
}

var errReleased = errors.New("the lease was released")

// renewedAt returns the lease after a renewal at now.
func (l Lease) renewedAt(now Instant) Lease {
	l.ExpiresAt = now.Wall.Add(l.TTL)
	l.NextHeartbeatAt = now.Wall.Add(l.HeartbeatInterval)
	l.RenewAttempt = 0
	return l
}

// lasts returns how long after a renewal the holder relies on the lease. The clock of a server may run a little faster than
// the holder's, by up to a thousandth while both are adjusted. With this margin, the holder stops first.
func (l Lease) lasts() time.Duration {
	if l.Strategy == Remote {
		return l.TTL - l.TTL/500
	}
	return l.TTL
}

// record returns the public part of the lease, under the name that the Records know.
func (h *heldLease) record(l Lease) Record {
	return Record{Resource: h.target.key, LeaseID: l.ID, OwnerID: l.OwnerID, OwnerName: l.OwnerName,
		Token: l.Token, AcquiredAt: l.AcquiredAt, ExpiresAt: l.ExpiresAt, TTL: l.TTL, Mode: l.Mode}
}

// maintain renews the lease until it ends.
func (h *heldLease) maintain() {
	defer close(h.gone)
	heartbeat := time.NewTimer(h.pause)
	defer heartbeat.Stop()
	for h.life.Err() == nil {
		select {
		case <-heartbeat.C:
			_ = h.beat()
			heartbeat.Reset(h.pause)
		case <-h.grant.Lost():
			_ = h.over(h.lapse())
		case <-h.enclosed():
			_ = h.over(h.lapse())
		case <-h.m.life.Done():
			_ = h.giveUp()
		case <-h.leaving:
			h.leaveErr = h.giveUp()
		case result := <-h.renewals:
			err := h.beat()
			heartbeat.Reset(h.pause)
			result <- err
		}
	}
}

// beat renews the lease and schedules the next heartbeat. It ends a lease that can no longer be renewed.
func (h *heldLease) beat() error {
	if gone := h.lapse(); gone != nil {
		return h.over(gone)
	}
	now := h.m.config.Clock.Now()
	old := h.snapshot()
	if late := now.Since(h.scheduled) - h.pause; late > old.HeartbeatInterval && !h.warned {
		h.warned = true
		h.emit(Event{Type: EventWarning, Warning: WarnHeartbeatDelayed, Lease: &old,
			Detail: "the heartbeat came " + late.Round(time.Millisecond).String() + " late; the page was probably suspended"})
	}
	lease := old.renewedAt(now)
	interrupted, err := h.write(lease, old.lasts()-now.Since(h.proven))
	if gone := h.lapse(); gone != nil {
		return h.over(gone)
	}
	switch {
	case interrupted: // maintain goes on with the release
		return h.ended()
	case errors.Is(err, ErrLost), errors.Is(err, ErrNotAllowed):
		return h.over(asError(err, CodeLost, OpRenew, old.Resource))
	case err != nil:
		return h.retry(err)
	}
	h.mu.Lock()
	h.proven = now
	h.mu.Unlock()
	h.delays = h.opts.Backoff.Delays()
	h.announce(EventRenewed, lease)
	return nil
}

// write renews the record. It returns early if the Records hang, the lease or the one around it ends, or its owner
// releases it.
func (h *heldLease) write(l Lease, limit time.Duration) (interrupted bool, err error) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	written := make(chan error, 1)
	go func() {
		written <- boundedErr(ctx, limit, func(ctx context.Context) error { return h.records.Renew(ctx, h.record(l)) })
	}()
	select {
	case err := <-written:
		return false, err
	case <-h.grant.Lost():
	case <-h.enclosed():
	case <-h.leaving:
	case <-h.m.life.Done():
	}
	return true, nil
}

// retry sends the events of a failed renewal and of the next attempt.
func (h *heldLease) retry(cause error) error {
	e := asError(cause, CodeRenewFailed, OpRenew, h.target.resource)
	if e.Detail == "" {
		e.Detail = "the record could not be written; the runtime tries again until the lease expires"
	}
	now := h.m.config.Clock.Now()
	lease := h.snapshot()
	lease.RenewAttempt++
	left := lease.lasts() - now.Since(h.proven) // two attempts must not use up all of it
	lease = h.schedule(lease, now, min(h.delays(), max(left/2, h.opts.Backoff.InitialDelay)))
	h.set(lease)
	h.emit(Event{Type: EventError, Operation: OpRenew, Err: e})
	h.emit(Event{Type: EventWaiting, Retry: lease.RenewAttempt, Delay: h.pause})
	return e
}

// schedule sets the next heartbeat so that it never comes after the end of the TTL, and records it in the lease.
func (h *heldLease) schedule(l Lease, now Instant, pause time.Duration) Lease {
	h.scheduled, h.pause = now, max(0, min(pause, l.lasts()-now.Since(h.proven)))
	l.NextHeartbeatAt = now.Wall.Add(h.pause)
	return l
}

// lapse returns the reason why the lease has ended although its owner did not release it, or nil. Expiry is checked
// first: a holder that slept past its TTL was rightly replaced.
func (h *heldLease) lapse() *Error {
	h.mu.Lock()
	lease, proven := h.lease, h.proven
	h.mu.Unlock()
	e := &Error{Operation: OpRenew, Resource: lease.Resource}
	if age := h.m.config.Clock.Now().Since(proven); age >= lease.lasts() {
		e.Code = CodeStale
		e.Detail = "not renewed for " + age.Round(time.Millisecond).String() + ", and ttlMs is " + millis(lease.TTL) + "; acquire it again before writing"
		return e
	}
	if wait.Closed(h.enclosed()) || h.within != nil && h.within.lapse() != nil { // it may not have looked yet
		e.Code, e.Detail = CodeLost, errEnclosingEnded.Error()
		return e
	}
	if wait.Closed(h.grant.Lost()) {
		e.Code = CodeLost
		e.Detail = "another owner took it over; acquire it again before writing"
		return e
	}
	return nil
}

// over ends a lease that its owner did not release. The owner gets its event first. Then the lock is released, so that
// nobody waits for an owner that may not write.
func (h *heldLease) over(e *Error) error {
	reason := ReasonRenewFailed
	if e.Code == CodeLost {
		reason = ReasonLeaseLost
	}
	h.close(e)
	h.m.fail(h.opts, e, reason)
	h.m.giveBack(h.grant)
	_ = h.removeRecord(h.snapshot())
	return e
}

// giveUp releases the lease at its owner's request: the lock, then the record.
func (h *heldLease) giveUp() error {
	if gone := h.lapse(); gone != nil {
		_ = h.over(gone) // reported by events, Lease.Err and Manager.With
		return nil
	}
	h.close(errReleased)
	lease := h.snapshot()
	h.emit(Event{Type: EventReleaseRequested, Lease: &lease})
	unlocked := boundedErr(context.Background(), answerLimit, h.grant.Release)
	err := joined(unlocked, h.removeRecord(lease))
	if err == nil {
		h.emit(Event{Type: EventReleased})
		return nil
	}
	e := &Error{Code: CodeReleaseFailed, Operation: OpRelease, Resource: lease.Resource, Err: err,
		Detail: "the lock is given back, but its record could not be removed; others may see it until it expires"}
	if unlocked != nil {
		e.Detail = "the lock could not be given back; others may have to wait until this page is closed"
	}
	h.emit(Event{Type: EventError, Operation: OpRelease, Err: e})
	return e
}

func (h *heldLease) removeRecord(l Lease) error {
	if h.unrecorded {
		return nil
	}
	return boundedErr(context.Background(), answerLimit, func(ctx context.Context) error {
		return h.records.Remove(ctx, h.record(l))
	})
}

// close ends the lease. It removes the lease first, so that Inspect never reports an ended one.
func (h *heldLease) close(why error) {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	h.end(why)
	delete(h.m.leases, h.snapshot().ID)
}

func (h *heldLease) emit(e Event) { h.m.emit(h.target.resource, h.opts.LeaseID, e) }

// announce makes the lease the present one and announces it with its next heartbeat. After a slow claim or renewal, the
// heartbeat comes when half of the remaining time is over, at the latest. Both events bear the time from which the
// heartbeat counts.
func (h *heldLease) announce(what EventType, l Lease) {
	now := h.m.config.Clock.Now()
	age := now.Since(h.proven)
	l = h.schedule(l, now, min(l.HeartbeatInterval, max(l.HeartbeatInterval-age, (l.lasts()-age)/2)))
	h.set(l)
	h.emit(Event{Type: what, At: now.Wall, Lease: &l})
	h.emit(Event{Type: EventRenewScheduled, At: now.Wall, Lease: &l, NextHeartbeatIn: h.pause})
}

func (h *heldLease) set(l Lease) {
	h.mu.Lock()
	h.lease = l
	h.mu.Unlock()
}

func (h *heldLease) snapshot() Lease {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lease
}

// failure returns the reason why the lease ended; nil while it lives and after a release.
func (h *heldLease) failure() error {
	if cause := context.Cause(h.life); cause != nil && !errors.Is(cause, errReleased) {
		return cause
	}
	return nil
}

// ended returns the reason why the lease can no longer be renewed.
func (h *heldLease) ended() error {
	if err := h.failure(); err != nil {
		return err
	}
	return &Error{Code: CodeLost, Operation: OpRenew, Resource: h.target.resource, Err: errReleased}
}

func (h *heldLease) renew(ctx context.Context) (Lease, error) {
	result := make(chan error, 1)
	select {
	case h.renewals <- result:
	case <-h.life.Done():
		return Lease{}, h.ended()
	case <-ctx.Done():
		return Lease{}, context.Cause(ctx)
	}
	select {
	case err := <-result:
		if err != nil {
			return Lease{}, err
		}
		return h.snapshot(), nil
	case <-ctx.Done():
		return Lease{}, context.Cause(ctx)
	}
}

func (h *heldLease) release(ctx context.Context, opts ReleaseOptions) error {
	if wait.Closed(h.gone) {
		return nil
	}
	h.leave.Do(func() { close(h.leaving) })
	select {
	case <-h.gone:
	case <-ctx.Done():
		if !wait.Closed(h.gone) {
			return context.Cause(ctx)
		}
	}
	if opts.Force {
		return nil
	}
	return h.leaveErr
}
