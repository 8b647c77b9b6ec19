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
	backend Backend
	grant   Grant
	opts    AcquireOptions
	wants   []Want     // the locks it holds itself, without those of the enclosing leases
	within  *heldLease // the lease around it, or nil

	renewals chan chan error // asks maintain to renew now; the channel sent has capacity 1
	leave    sync.Once       // guards leaving and leaveOpts
	leaving  chan struct{}   // closed when the owner wants to release
	gone     chan struct{}   // closed when the last event of the lease was emitted
	life     context.Context // ends with the lease; its cause says why
	end      context.CancelCauseFunc

	leaveOpts ReleaseOptions // read after leaving is closed
	leaveErr  error          // read after gone is closed

	mu    sync.Mutex
	lease Lease // the present snapshot, written by maintain

	// Used by maintain alone.
	proven    Instant // the last moment at which the lease was certainly held
	scheduled Instant // when the next heartbeat was scheduled, and
	pause     time.Duration
	delays    func() time.Duration
	warned    bool // heartbeat-delayed was sent
}

var errReleased = errors.New("the lease was released")

// hold makes a lease of a grant that was requested at since, sends its event and begins to renew it. If that fails, it
// releases the grant.
func (m *Manager) hold(ctx context.Context, b Backend, grant Grant, since Instant, fallback bool, opts AcquireOptions, within *heldLease) (Lease, error) {
	now := m.config.Clock.Now()
	s := b.target(opts.Mode)
	slot, wants := s.taken(grant)
	if g, ok := grant.(*bundle); ok && g.remote != nil {
		b.Records = g.remote
	}
	h := &heldLease{m: m, backend: b, grant: grant, opts: opts, wants: wants, within: within, proven: now, delays: opts.Backoff.Delays(),
		renewals: make(chan chan error), leaving: make(chan struct{}), gone: make(chan struct{})}
	h.life, h.end = context.WithCancelCause(context.Background())
	lease := Lease{
		ID: opts.LeaseID, OwnerID: m.config.OwnerID, OwnerName: m.config.OwnerName,
		Resource: b.Resource, Strategy: b.Strategy, Fallback: fallback, Mode: opts.Mode,
		Paths: s.places, Slots: max(1, s.slots), Slot: slot, Within: within.id(),
		TTL: opts.ttl(b.Strategy), HeartbeatInterval: opts.HeartbeatInterval,
		AcquiredAt: now.Wall, held: h,
	}.renewedAt(now)
	claimed := make(chan struct{})
	claim := func(ctx context.Context) (int64, error) {
		defer close(claimed)
		r := h.record(lease)
		r.Token = opts.After
		return b.Records.Claim(ctx, r, opts.Steal)
	}
	var token int64
	var err error
	if b.unrecorded(m) {
		token, err = claim(ctx)
		now = m.config.Clock.Now()
	} else {
		token, err = bounded(ctx, lease.TTL, claim)
	}
	if err == nil {
		m.catchUp(ctx, b, since)
		err = stillGranted(ctx, grant, now)
	}
	if err != nil {
		m.tidy(ctx, func() {
			// The record may still be written; it would overwrite the record of a successor.
			select {
			case <-claimed:
			case <-time.After(answerLimit):
			}
			_ = h.removeRecord(lease)
			m.giveBack(grant)
		})
		return Lease{}, err
	}
	lease.Token = token
	if b.unrecorded(m) {
		h.grant = &delayedRelease{grant, m.tokens, token}
	}
	h.lease = lease
	m.mu.Lock()
	m.leases[lease.ID] = h
	m.mu.Unlock()
	if fallback {
		h.emit(Event{Type: EventWarning, Warning: WarnFallbackEngaged, Lease: &lease,
			Detail: "Web Locks cannot be used here; " + string(b.Strategy) + " serves instead"})
		h.emit(Event{Type: EventFallbackEngaged, Lease: &lease})
	}
	h.tell(EventAcquired, lease)
	m.work.Go(h.maintain)
	return h.snapshot(), nil
}

// unrecorded reports whether leases have a token and no record, so that nothing can hang.
func (b Backend) unrecorded(m *Manager) bool { return b.Records == Records(m.tokens) }

// renewedAt returns the lease after a renewal at now.
func (l Lease) renewedAt(now Instant) Lease {
	l.ExpiresAt = now.Wall.Add(l.TTL)
	l.NextHeartbeatAt = now.Wall.Add(l.HeartbeatInterval)
	l.RenewAttempt = 0
	return l
}

// lasts returns how long after a renewal the holder relies on the lease. The clock of a server may run a little faster than
// the holder's, by up to a thousandth while both are adjusted. So the holder is the first to stop.
func (l Lease) lasts() time.Duration {
	if l.Strategy == Remote {
		return l.TTL - l.TTL/500
	}
	return l.TTL
}

// record returns the public part of the lease, under the name that the Records know.
func (h *heldLease) record(l Lease) Record {
	return Record{Resource: h.backend.Name(), LeaseID: l.ID, OwnerID: l.OwnerID, OwnerName: l.OwnerName,
		Token: l.Token, AcquiredAt: l.AcquiredAt, ExpiresAt: l.ExpiresAt, TTL: l.TTL}
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
			_ = h.giveUp(ReleaseOptions{})
		case <-h.leaving:
			h.leaveErr = h.giveUp(h.leaveOpts)
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
	h.proven = now
	h.delays = h.opts.Backoff.Delays()
	h.tell(EventRenewed, lease)
	return nil
}

// write renews the record. It returns early if the Records hang, the lease is lost or its owner releases it.
func (h *heldLease) write(l Lease, limit time.Duration) (interrupted bool, err error) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	written := make(chan error, 1)
	go func() {
		written <- settle(ctx, limit, func(ctx context.Context) error { return h.backend.Records.Renew(ctx, h.record(l)) })
	}()
	select {
	case err := <-written:
		return false, err
	case <-h.grant.Lost():
	case <-h.leaving:
	case <-h.m.life.Done():
	}
	return true, nil
}

// retry sends the events of a failed renewal and of the next attempt.
func (h *heldLease) retry(cause error) error {
	e := asError(cause, CodeRenewFailed, OpRenew, h.backend.Resource)
	if e.Detail == "" {
		e.Detail = "the record could not be written; it is tried again until the lease runs out"
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
	lease := h.snapshot()
	e := &Error{Operation: OpRenew, Resource: lease.Resource}
	if age := h.m.config.Clock.Now().Since(h.proven); age >= lease.lasts() {
		e.Code = CodeStale
		e.Detail = "not renewed for " + age.Round(time.Millisecond).String() + ", and ttlMs is " + millis(lease.TTL) + "; acquire it again before writing"
		return e
	}
	if wait.Closed(h.enclosed()) {
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
func (h *heldLease) giveUp(opts ReleaseOptions) error {
	if gone := h.lapse(); gone != nil {
		_ = h.over(gone) // reported by events, Lease.Err and Manager.With
		return nil
	}
	h.close(errReleased)
	lease := h.snapshot()
	h.emit(Event{Type: EventReleaseRequested, Lease: &lease})
	unlocked := settle(context.Background(), answerLimit, h.grant.Release)
	err := first(unlocked, h.removeRecord(lease))
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
	if opts.Force {
		return nil
	}
	return e
}

func (h *heldLease) removeRecord(l Lease) error {
	if h.backend.unrecorded(h.m) {
		return nil
	}
	return settle(context.Background(), answerLimit, func(ctx context.Context) error {
		return h.backend.Records.Remove(ctx, h.record(l))
	})
}

// close ends the lease. It removes the lease first, so that Inspect never reports an ended one.
func (h *heldLease) close(why error) {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	h.end(why)
	delete(h.m.leases, h.snapshot().ID)
}

func (h *heldLease) emit(e Event) { h.m.emit(h.backend.Resource, h.opts.LeaseID, e) }

// tell makes the lease the present one and announces it with its next heartbeat. After a slow claim or renewal, the
// heartbeat comes when half of the remaining time is over, at the latest. Both events bear the time from which the
// heartbeat counts.
func (h *heldLease) tell(what EventType, l Lease) {
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
	return &Error{Code: CodeLost, Operation: OpRenew, Resource: h.backend.Resource, Err: errReleased}
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
	mine := false
	h.leave.Do(func() {
		mine, h.leaveOpts = true, opts
		close(h.leaving)
	})
	select {
	case <-h.gone:
	case <-ctx.Done():
		if !wait.Closed(h.gone) {
			return context.Cause(ctx)
		}
	}
	if mine {
		return h.leaveErr
	}
	return nil
}
