package locks

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast/server/kv"
)

const (
	// backstop is the interval at which a waiter looks without a notification. A look has the same cost for any
	// number of waiters.
	backstop = 5 * time.Second
	// againAfter is the pause before a retry when the store refused for a reason outside this server's view.
	againAfter = 100 * time.Millisecond
)

// errLeftLine means that a request lost its place in the queue: this server could not renew its instance lease.
var errLeftLine = errors.New("the place in the queue was lost")

// line joins the queue, waits and acquires.
func (t *Table) line(ctx context.Context, r Request, own *ticket) (lease Lease, err error) {
	t.config.Metrics.Waiters.Inc()
	defer t.config.Metrics.Waiters.Dec()
	limited, cancel := context.WithTimeout(ctx, r.Wait)
	defer cancel()
	defer func() {
		if err != nil {
			t.leave(own)
		} else {
			t.mirror.visits.leave(own)
		}
	}()
	for {
		if err = t.join(limited, own, r.Wait); err == nil {
			if r.Queued != nil {
				r.Queued()
			}
			lease, err = t.waitAt(limited, own)
		}
		switch {
		case errors.Is(err, errLeftLine):
			continue
		case errors.Is(err, kv.ErrUnavailable), errors.Is(err, kv.ErrFull):
			return Lease{}, err // the grant may have been made, so the answer must not deny it
		case err != nil && ctx.Err() == nil && limited.Err() != nil:
			t.config.Metrics.Conflicts.Inc()
			return Lease{}, &DeniedError{Holders: t.holdersBefore(own.claim), waited: true}
		}
		return lease, err
	}
}

// waitAt waits until nothing conflicts with a ticket, and then acquires.
func (t *Table) waitAt(ctx context.Context, own *ticket) (Lease, error) {
	w := &waiting{notifier: make(notifier, 1)}
	defer t.forget(w)
	for {
		free, err := t.lookAhead(own, w)
		if err != nil {
			return Lease{}, err
		}
		pause := backstop
		if free {
			lease, conflicts, err := t.tryGrab(ctx, own)
			if err != nil || lease.Token != 0 {
				return lease, err
			}
			if own.must = conflicts.newest(); own.must > 0 {
				continue // wait until this server's view contains it
			}
			pause = againAfter
		}
		timer := time.NewTimer(pause)
		select {
		case <-w.notifier:
		case <-timer.C:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		timer.Stop()
		if err != nil {
			return Lease{}, err
		}
	}
}

func (t *Table) forget(w *waiting) {
	t.mirror.mu.Lock()
	defer t.mirror.mu.Unlock()
	t.mirror.notifiers.forget(w)
}

// lookAhead reports whether nothing conflicts with a ticket. Otherwise the notifier wakes its owner when that may change: when the
// ticket ahead leaves, or, for the first ticket, when a lease ends. So a release wakes only the first waiter.
func (t *Table) lookAhead(own *ticket, w *waiting) (free bool, err error) {
	m := t.mirror
	m.mu.Lock()
	defer m.mu.Unlock()
	m.looks++
	m.notifiers.forget(w)
	m.notifiers.await(w, ticketEvent(own.Lease))
	if must := max(own.joined, own.must); m.revision < must {
		// This server's view does not contain the ticket yet, so it may also lack the tickets ahead.
		m.notifiers.awaitRevision(w, must)
		return false, nil
	}
	switch seen := m.tickets[own.Lease]; {
	case seen == nil:
		return false, errLeftLine
	case seen.joined > own.joined:
		return false, ErrReplaced
	}
	if m.got(own) != nil {
		return false, errGranted
	}
	if m.graph.Ticket(own.Lease).Doomed {
		t.config.Metrics.Deadlocks.Inc()
		return false, ErrDeadlock
	}
	ahead := m.graph.Ahead(own.Lease)
	if ahead.Free() {
		own.Slot = ahead.Slot
		return true, t.mayHold(own) // it may have got others meanwhile
	}
	if concerns := own.concerns; concerns != nil {
		own.concerns = nil
		if claims, _ := m.inTheWay(own.claim); concerns(claims) {
			return false, errOwnLease
		}
	}
	if ahead.Ticket != nil {
		m.notifiers.await(w, ticketEvent(ahead.Ticket.ID))
	}
	for _, c := range ahead.Claims {
		m.notifiers.await(w, claimEvent(c.ID))
	}
	return false, nil
}

// tryGrab acquires for a waiting ticket, or returns its conflicts.
func (t *Table) tryGrab(ctx context.Context, own *ticket) (Lease, found, error) {
	lease, result, err := t.grab(ctx, own)
	if err != nil || result.Held {
		return lease, found{}, err
	}
	conflicts := readConflicts(result.Reads)
	if !bytes.Equal(conflicts.stub, own.text) {
		return Lease{}, conflicts, ErrReplaced
	}
	_, err = t.clearOverdue(ctx, conflicts.claims)
	return Lease{}, conflicts, err
}

// newest is the revision of the latest conflicting lease.
func (f found) newest() (revision int64) {
	for _, s := range f.claims {
		revision = max(revision, s.token)
	}
	return revision
}

// holdersBefore names the leases in this server's view that conflict with a claim.
func (t *Table) holdersBefore(c claim) []Lease {
	t.mirror.mu.Lock()
	list, _ := t.mirror.inTheWay(c)
	t.mirror.mu.Unlock()
	return t.name(list)
}
