package locks

import (
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

// errNotSeen means that this server's view of the table does not have a request's place in line.
var errNotSeen = errors.New("the place in line has not been seen")

// errLeftLine means that a request's place in line was lost: this server could not renew its instance lease.
var errLeftLine = errors.New("the place in line was lost")

// line takes a place in line, waits and acquires.
func (t *Table) line(ctx context.Context, r Request, c claim) (Lease, error) {
	t.config.Metrics.Waiters.Inc()
	defer t.config.Metrics.Waiters.Dec()
	limited, cancel := context.WithTimeout(ctx, r.Wait)
	defer cancel()
	for {
		lease, err := t.lineOnce(limited, c)
		switch {
		case errors.Is(err, errLeftLine):
			continue
		case err != nil && ctx.Err() == nil && limited.Err() != nil:
			t.config.Metrics.Conflicts.Inc()
			return Lease{}, &DeniedError{Holders: t.inTheWay(c), waited: true}
		}
		return lease, err
	}
}

func (t *Table) lineOnce(ctx context.Context, c claim) (lease Lease, err error) {
	instance, err := t.instanceLease(ctx)
	if err != nil {
		return Lease{}, err
	}
	tickets := c.tickets()
	var queue []kv.Op
	for _, key := range tickets {
		queue = append(queue, kv.PutBound(key, c.encode(), instance))
	}
	defer func() {
		if err != nil {
			t.leave(tickets)
		}
	}()
	place, err := t.store.Commit(ctx, kv.Txn{Then: queue})
	if err != nil {
		return Lease{}, err
	}
	return t.waitAt(ctx, &ticket{c, place.Revision}, tickets)
}

// waitAt waits until nothing is in the way of a ticket, and grabs.
func (t *Table) waitAt(ctx context.Context, own *ticket, tickets []string) (Lease, error) {
	ring := make(bell, 1)
	arrived := false
	for {
		blocker, err := t.lookAhead(own, ring)
		switch {
		case errors.Is(err, errNotSeen) && arrived:
			return Lease{}, errLeftLine
		case errors.Is(err, errNotSeen):
			err = nil
		case err != nil:
			return Lease{}, err
		default:
			arrived = true
		}
		limit := circleLook
		if blocker == "" {
			if lease, done, err := t.tryGrab(ctx, own, tickets); done || err != nil {
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
	if m.tickets[own.Lease] == nil {
		// This server has not heard of the ticket yet, so it may not have heard of those ahead of it either.
		key := own.tickets()[0]
		m.await(key, ring)
		return key, errNotSeen
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
		if b.ticket != nil && (last.ticket == nil || b.ticket.place > last.ticket.place) {
			last = b
		}
	}
	m.await(last.key, ring)
	return last.key, nil
}

func (t *Table) tryGrab(ctx context.Context, own *ticket, tickets []string) (Lease, bool, error) {
	lease, result, err := t.grab(ctx, own.claim, tickets)
	if err != nil || result.Held {
		return lease, err == nil, err
	}
	f := standing(result.Reads)
	_, err = t.clearOverdue(ctx, f.claims)
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

// leave gives up a place in line, whatever became of the caller's context.
func (t *Table) leave(tickets []string) {
	ctx, cancel := context.WithTimeout(context.Background(), t.config.InstanceTTL)
	defer cancel()
	var ops []kv.Op
	for _, key := range tickets {
		ops = append(ops, kv.Delete(key))
	}
	if _, err := t.store.Commit(ctx, kv.Txn{Then: ops}); err != nil {
		t.config.Log.Warn("a place in line could not be given up; it goes with this server", "error", err)
	}
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
