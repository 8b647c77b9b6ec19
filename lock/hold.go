package lock

import (
	"context"
	"time"
)

// hold makes a lease of a grant that was requested at since, sends its event and begins to renew it. If that fails, it
// releases the grant.
func (a *acquisition) hold(ctx context.Context, t *target, g *granted, since Instant) (Lease, error) {
	h := a.newLease(t, g)
	token, err := h.claim(ctx, a.steal, since)
	if err != nil {
		return Lease{}, err
	}
	h.begin(token)
	return h.snapshot(), nil
}

// newLease returns the lease of a grant. It has no token yet.
func (a *acquisition) newLease(t *target, g *granted) *heldLease {
	m, now := a.m, a.m.config.Clock.Now()
	h := &heldLease{m: m, target: t, grant: g.grant, opts: a.opts, wants: g.wants, within: a.within, records: g.records, proven: now,
		delays: a.opts.Backoff.Delays(), renewals: make(chan chan error), leaving: make(chan struct{}), gone: make(chan struct{})}
	if h.unrecorded = h.records == nil; h.unrecorded {
		h.records = m.tokens
	}
	h.life, h.end = context.WithCancelCause(context.Background())
	h.lease = Lease{
		ID: a.opts.LeaseID, OwnerID: m.config.OwnerID, OwnerName: m.config.OwnerName,
		Resource: t.resource, Strategy: t.backend.Strategy, Fallback: a.fallback, Mode: t.mode,
		Paths: t.places, Slots: max(1, t.slots), Slot: g.slot, Within: a.within.id(),
		TTL: a.opts.ttl(t.backend.Strategy), HeartbeatInterval: a.opts.HeartbeatInterval,
		AcquiredAt: now.Wall, held: h,
	}.renewedAt(now)
	return h
}

// claim returns the token of a new lease. If there is none, or the lease has ended meanwhile, it releases the grant.
func (h *heldLease) claim(ctx context.Context, stolen bool, since Instant) (token int64, err error) {
	claimed := make(chan struct{})
	claim := func(ctx context.Context) (int64, error) {
		defer close(claimed)
		ctx, lose := context.WithCancelCause(ctx)
		lost := h.grant.Lost()
		go func() {
			select {
			case <-lost: // a later record would end the lease of the client that stole the lock
				lose(errStolen)
			case <-claimed:
			}
			lose(nil)
		}()
		r := h.record(h.lease)
		r.Token = h.opts.After
		return h.records.Claim(ctx, r, stolen)
	}
	now := h.proven
	if h.unrecorded {
		token, err = claim(ctx)
		now = h.m.config.Clock.Now()
	} else {
		token, err = bounded(ctx, h.lease.TTL, claim)
	}
	if err == nil {
		h.m.catchUp(ctx, h.target, since, h.within != nil)
		// The grant may be lost while stillWithin waits for the server. An end of ctx cuts catchUp short.
		err = joined(h.stillWithin(ctx, now), stillGranted(ctx, h.grant, now), context.Cause(ctx))
	}
	if err == nil && h.m.config.Clock.Now().Since(h.proven) >= h.lease.lasts() {
		err = errNoAnswer // the page was frozen while it waited for its token or the Locker
	}
	if err != nil {
		h.discard(ctx, claimed)
	}
	return token, err
}

// discard releases the grant of a lease that does not begin. Its record may still be written, until claimed is closed; it
// would overwrite the record of a successor.
func (h *heldLease) discard(ctx context.Context, claimed <-chan struct{}) {
	h.m.tidy(ctx, func() {
		select {
		case <-claimed:
		case <-time.After(answerLimit):
		}
		_ = h.removeRecord(h.lease)
		h.m.giveBack(h.grant)
	})
}

// begin announces the lease and begins to renew it.
func (h *heldLease) begin(token int64) {
	h.grant = &delayedRelease{h.grant, h.m.tokens}
	h.lease.Token = token
	lease := h.lease
	h.m.mu.Lock()
	h.m.leases[lease.ID] = h
	h.m.mu.Unlock()
	if lease.Fallback {
		h.emit(Event{Type: EventWarning, Warning: WarnFallbackEngaged, Lease: &lease,
			Detail: "Web Locks cannot be used here; " + string(lease.Strategy) + " serves instead"})
		h.emit(Event{Type: EventFallbackEngaged, Lease: &lease})
	}
	h.announce(EventAcquired, lease)
	h.m.work.Go(h.maintain)
}
