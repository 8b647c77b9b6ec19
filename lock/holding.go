package lock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// holding is a lease from its grant to its end. One goroutine, keep, does everything
// that happens to it; others ask it through commands.
type holding struct {
	m       *Manager
	backend Backend
	grant   Grant
	opts    AcquireOptions

	commands chan command
	gone     chan struct{}   // closed when the last event of the lease was emitted
	life     context.Context // ends with the lease; its cause says why
	end      context.CancelCauseFunc

	mu    sync.Mutex
	lease Lease // the present snapshot, written by keep

	// Used by keep alone.
	proven Instant // the last moment at which the lease was surely held
	delays func() time.Duration
	warned bool // heartbeat-delayed was told
}

// command asks keep to renew or to release.
type command struct {
	release *ReleaseOptions // nil: renew
	result  chan error      // has one place
}

var errReleased = errors.New("the lease was released")

// hold makes the lease of a grant, tells of it and begins to keep it.
func (m *Manager) hold(ctx context.Context, b Backend, grant Grant, fallback bool, opts AcquireOptions) (Lease, error) {
	now := m.config.Clock.Now()
	h := &holding{m: m, backend: b, grant: grant, opts: opts, proven: now, delays: opts.Backoff.delays(),
		commands: make(chan command), gone: make(chan struct{})}
	h.life, h.end = context.WithCancelCause(context.Background())
	lease := Lease{
		ID: NewID(), OwnerID: m.config.OwnerID, OwnerName: m.config.OwnerName,
		Resource: b.Resource, Strategy: b.Strategy, Fallback: fallback, Mode: opts.Mode,
		TTL: opts.ttl(b.Strategy), HeartbeatInterval: opts.HeartbeatInterval,
		AcquiredAt: now.Wall, held: h,
	}.renewedAt(now)
	token, err := bounded(ctx, lease.TTL, func(ctx context.Context) (int64, error) {
		return b.Records.Claim(ctx, lease.record(), opts.Steal)
	})
	if err != nil {
		// It may have been written nevertheless.
		h.removeRecord(lease)
		return Lease{}, err
	}
	lease.Token = token
	h.lease = lease
	m.mu.Lock()
	m.leases[lease.ID] = h
	m.mu.Unlock()
	if fallback {
		m.emit(b.Resource, Event{Type: EventWarning, Warning: WarnFallbackEngaged, Lease: &lease,
			Detail: "Web Locks cannot be used here; " + string(b.Strategy) + " serves instead"})
		m.emit(b.Resource, Event{Type: EventFallbackEngaged, Lease: &lease})
	}
	h.tell(EventAcquired, lease)
	m.work.Go(h.keep)
	return lease, nil
}

// renewedAt returns the lease as a renewal at now leaves it.
func (l Lease) renewedAt(now Instant) Lease {
	l.ExpiresAt = now.Wall.Add(l.TTL)
	l.NextHeartbeatAt = now.Wall.Add(l.HeartbeatInterval)
	l.RenewAttempt = 0
	return l
}

func (l Lease) record() Record {
	return Record{Resource: l.Resource, LeaseID: l.ID, OwnerID: l.OwnerID, OwnerName: l.OwnerName,
		Token: l.Token, AcquiredAt: l.AcquiredAt, ExpiresAt: l.ExpiresAt}
}

// keep renews the lease until it ends.
func (h *holding) keep() {
	defer close(h.gone)
	heartbeat := time.NewTimer(h.lease.HeartbeatInterval)
	defer heartbeat.Stop()
	for h.life.Err() == nil {
		select {
		case <-heartbeat.C:
			pause, _ := h.beat()
			heartbeat.Reset(pause)
		case <-h.grant.Lost():
			h.over(h.lapse())
		case <-h.m.life.Done():
			_ = h.giveUp(ReleaseOptions{})
		case c := <-h.commands:
			if c.release != nil {
				c.result <- h.giveUp(*c.release)
				continue
			}
			pause, err := h.beat()
			heartbeat.Reset(pause)
			c.result <- err
		}
	}
}

// beat renews the lease, or ends it where it cannot be renewed any more. It returns
// the time to the next attempt.
func (h *holding) beat() (pause time.Duration, err error) {
	if gone := h.lapse(); gone != nil {
		return 0, h.over(gone)
	}
	now := h.m.config.Clock.Now()
	old := h.snapshot()
	if late := now.Since(h.proven) - 2*old.HeartbeatInterval; late >= 0 && old.RenewAttempt == 0 && !h.warned {
		h.warned = true
		h.m.emit(old.Resource, Event{Type: EventWarning, Warning: WarnHeartbeatDelayed, Lease: &old,
			Detail: fmt.Sprintf("renewed %v after the last time instead of %v; the page was probably suspended",
				now.Since(h.proven).Round(time.Millisecond), old.HeartbeatInterval)})
	}
	lease := old.renewedAt(now)
	err = settle(h.m.life, old.TTL-now.Since(h.proven), func(ctx context.Context) error {
		return h.backend.Records.Renew(ctx, lease.record())
	})
	if errors.Is(err, ErrLost) {
		return 0, h.over(asError(err, CodeLost, OpRenew, old.Resource))
	}
	if gone := h.lapse(); gone != nil {
		return 0, h.over(gone)
	}
	if err != nil {
		return h.retry(err)
	}
	h.proven = now
	h.delays = h.opts.Backoff.delays()
	h.tell(EventRenewed, lease)
	return lease.HeartbeatInterval, nil
}

// retry tells of a failed renewal and of the next attempt.
func (h *holding) retry(cause error) (pause time.Duration, err error) {
	e := asError(cause, CodeRenewFailed, OpRenew, h.backend.Resource)
	if e.Detail == "" {
		e.Detail = "the record could not be written; it is tried again until the lease runs out"
	}
	now := h.m.config.Clock.Now()
	lease := h.snapshot()
	pause = min(h.delays(), lease.TTL-now.Since(h.proven))
	lease.RenewAttempt++
	lease.NextHeartbeatAt = now.Wall.Add(pause)
	h.set(lease)
	h.m.emit(lease.Resource, Event{Type: EventError, Operation: OpRenew, Err: e})
	h.m.emit(lease.Resource, Event{Type: EventWaiting, Retry: lease.RenewAttempt, Delay: pause})
	return pause, e
}

// lapse says why the lease has ended although nobody released it, or nil. Running out
// comes first: who slept past the TTL was rightly replaced.
func (h *holding) lapse() *Error {
	lease := h.snapshot()
	e := &Error{Operation: OpRenew, Resource: lease.Resource}
	if age := h.m.config.Clock.Now().Since(h.proven); age >= lease.TTL {
		e.Code = CodeStale
		e.Detail = fmt.Sprintf("not renewed for %v, longer than ttlMs (%d); acquire it again before writing",
			age.Round(time.Millisecond), lease.TTL.Milliseconds())
		return e
	}
	select {
	case <-h.grant.Lost():
		e.Code = CodeLost
		e.Detail = "another owner took it over; acquire it again before writing"
		return e
	default:
		return nil
	}
}

// over ends a lease that its owner did not release: the owner is told, then the lock
// is given back so that nobody waits for one who may not write.
func (h *holding) over(e *Error) error {
	reason := ReasonRenewFailed
	if e.Code == CodeLost {
		reason = ReasonLeaseLost
	}
	h.close(e)
	h.m.fail(e, reason, h.opts.OnReadonly)
	h.m.giveBack(h.grant)
	h.removeRecord(h.snapshot())
	return e
}

// giveUp releases the lease at its owner's wish: the lock, then the record.
func (h *holding) giveUp(opts ReleaseOptions) error {
	if gone := h.lapse(); gone != nil {
		_ = h.over(gone) // told by events, Lease.Err and WithProjectLock
		return nil
	}
	h.close(errReleased)
	lease := h.snapshot()
	h.m.emit(lease.Resource, Event{Type: EventReleaseRequested, Lease: &lease})
	err := first(settle(context.Background(), answerLimit, h.grant.Release), h.removeRecord(lease))
	if err == nil {
		h.m.emit(lease.Resource, Event{Type: EventReleased, LeaseID: lease.ID})
		return nil
	}
	e := &Error{Code: CodeReleaseFailed, Operation: OpRelease, Resource: lease.Resource, Err: err,
		Detail: "the lock is given back, but its record could not be removed; others may see it until it expires"}
	h.m.emit(lease.Resource, Event{Type: EventError, Operation: OpRelease, Err: e})
	if opts.Force {
		return nil
	}
	return e
}

func (h *holding) removeRecord(l Lease) error {
	return settle(context.Background(), answerLimit, func(ctx context.Context) error {
		return h.backend.Records.Remove(ctx, l.record())
	})
}

func (h *holding) close(why error) {
	h.end(why)
	h.m.mu.Lock()
	delete(h.m.leases, h.snapshot().ID)
	h.m.mu.Unlock()
}

// tell makes the lease the present one and announces it with its next heartbeat.
func (h *holding) tell(what EventType, l Lease) {
	h.set(l)
	h.m.emit(l.Resource, Event{Type: what, Lease: &l})
	h.m.emit(l.Resource, Event{Type: EventRenewScheduled, Lease: &l, NextHeartbeatIn: l.HeartbeatInterval})
}

func (h *holding) set(l Lease) {
	h.mu.Lock()
	h.lease = l
	h.mu.Unlock()
}

func (h *holding) snapshot() Lease {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lease
}

// failure says why the lease ended unless it lives or was released.
func (h *holding) failure() error {
	if cause := context.Cause(h.life); cause != nil && !errors.Is(cause, errReleased) {
		return cause
	}
	return nil
}

func (h *holding) renew(ctx context.Context) (Lease, error) {
	ended, err := h.ask(ctx, command{result: make(chan error, 1)})
	if ended {
		err = h.failure()
		if err == nil {
			err = &Error{Code: CodeLost, Operation: OpRenew, Resource: h.backend.Resource, Err: errReleased}
		}
	}
	if err != nil {
		return Lease{}, err
	}
	return h.snapshot(), nil
}

func (h *holding) release(ctx context.Context, opts ReleaseOptions) error {
	_, err := h.ask(ctx, command{release: &opts, result: make(chan error, 1)})
	return err
}

// ask hands the command to keep and waits for its result. ended reports that the
// lease was over before.
func (h *holding) ask(ctx context.Context, c command) (ended bool, err error) {
	select {
	case h.commands <- c:
	case <-h.gone:
		return true, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	select {
	case err := <-c.result:
		return false, err
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}
