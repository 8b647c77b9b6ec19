package locks

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast/server/kv"
)

const (
	// circleLook is how often a holder that waits looks whether it waits in a circle, which somebody else may close.
	circleLook = 200 * time.Millisecond
	// behindLook is how long a request waits for this server to see what a transaction has seen.
	behindLook = 50 * time.Millisecond
)

// errLeftLine means that a request's place in line was lost: this server could not renew its instance lease.
var errLeftLine = errors.New("the place in line was lost")

// line takes a place in line, waits and acquires.
func (t *Table) line(ctx context.Context, r Request, own *ticket) (lease Lease, err error) {
	t.config.Metrics.Waiters.Inc()
	defer t.config.Metrics.Waiters.Dec()
	limited, cancel := context.WithTimeout(ctx, r.Wait)
	defer cancel()
	defer func() {
		if err != nil {
			t.leave(own)
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
		case errors.Is(err, kv.ErrUnavailable):
			return Lease{}, err // perhaps it was granted: nobody may say that it was not
		case err != nil && ctx.Err() == nil && limited.Err() != nil:
			t.config.Metrics.Conflicts.Inc()
			return Lease{}, &DeniedError{Holders: t.inTheWay(own.claim), waited: true}
		}
		return lease, err
	}
}

// waitAt waits until nothing is in the way of a ticket, and grabs.
func (t *Table) waitAt(ctx context.Context, own *ticket) (Lease, error) {
	ring := make(bell, 1)
	for {
		blocker, err := t.lookAhead(own, ring)
		if err != nil {
			return Lease{}, err
		}
		limit := circleLook
		if blocker == "" {
			if lease, done, err := t.tryGrab(ctx, own); done || err != nil {
				return lease, err
			}
			limit = behindLook
		}
		select {
		case <-ring:
		case <-t.whileHolding(own.Holder, limit):
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		t.mirror.forget(blocker, ring)
		if err != nil {
			return Lease{}, err
		}
	}
}

// lookAhead returns the key that the ticket waits for: of those ahead in line the last, otherwise a claim. So a
// release wakes the first in line alone.
func (t *Table) lookAhead(own *ticket, ring bell) (string, error) {
	m := t.mirror
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.revision < own.joined {
		// This server has not heard of the ticket yet, so it may not have heard of those ahead of it either.
		key := own.waitKeys()[0]
		m.await(key, ring)
		return key, nil
	}
	switch seen := m.tickets[own.Lease]; {
	case seen == nil:
		return "", errLeftLine
	case seen.joined > own.joined:
		return "", ErrReplaced
	}
	if m.granted(own) != nil {
		return "", errGranted
	}
	blockers, slot := m.blockers(own)
	own.Slot = slot
	if len(blockers) == 0 {
		return "", nil
	}
	if m.deadlocked(own, blockers) {
		t.config.Metrics.Deadlocks.Inc()
		return "", ErrDeadlock
	}
	last := blockers[0]
	for _, b := range blockers {
		if b.ticket != nil && (last.ticket == nil || b.ticket.Place > last.ticket.Place) {
			last = b
		}
	}
	m.await(last.key, ring)
	return last.key, nil
}

func (t *Table) tryGrab(ctx context.Context, own *ticket) (Lease, bool, error) {
	lease, result, err := t.grab(ctx, own)
	if err != nil || result.Held {
		return lease, err == nil, err
	}
	met := standing(result.Reads)
	if !bytes.Equal(met.stub, own.text) {
		return Lease{}, false, ErrReplaced
	}
	_, err = t.clearOverdue(ctx, met.claims)
	return Lease{}, false, err
}

// whileHolding fires after d, for one who can be in a circle or must look again soon; others wait for the bell.
func (t *Table) whileHolding(holder string, d time.Duration) <-chan time.Time {
	t.mirror.mu.Lock()
	defer t.mirror.mu.Unlock()
	if d == behindLook || t.mirror.holds(holder) {
		return time.After(d)
	}
	return time.After(10 * circleLook) // a backstop, should a bell be missed
}

// inTheWay names the leases in the way of a claim, as this server sees them.
func (t *Table) inTheWay(c claim) []Lease {
	t.mirror.mu.Lock()
	var stands []stand
	seen := map[string]bool{}
	list, _ := t.mirror.obstacles(c, 0)
	for _, o := range list {
		if !seen[o.held.Lease] {
			seen[o.held.Lease] = true
			stands = append(stands, stand{o.held.claim, o.key, o.held.token})
		}
	}
	t.mirror.mu.Unlock()
	return t.name(stands)
}
