package locks

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/internal/wait"
	"github.com/holdfast-dev/holdfast/server/kv"
)

// Due is a lease whose time is up, as far as this server knows.
type Due struct {
	storedLease
	beatAt   int64
	deadline time.Time
}

// dueAtOnce is the maximum number of leases that [Table.Due] returns. After a long stop all leases of a store are due
// at once.
const dueAtOnce = 1000

// Due returns leases whose time is up, and the next deadline, which is zero if there is none.
func (t *Table) Due(now time.Time) (due []Due, next time.Time) {
	m := t.mirror
	m.mu.Lock()
	defer m.mu.Unlock()
	for todo := []int{0}; len(todo) > 0; todo = todo[1:] {
		i := todo[0]
		switch {
		case i >= len(m.due):
		case m.due[i].deadline.After(now): // so is everything below it in the heap
			if next.IsZero() || m.due[i].deadline.Before(next) {
				next = m.due[i].deadline
			}
		case len(due) == dueAtOnce:
			m.announced = now
			return due, now
		default:
			due = append(due, m.due[i].due())
			todo = append(todo, 2*i+1, 2*i+2)
		}
	}
	m.announced = next
	return due, next
}

// Changed returns a channel that receives when [Table.Due] may have a new answer.
func (t *Table) Changed() <-chan struct{} { return t.mirror.earlier }

// Expire ends a lease whose time is up, unless it has been extended meanwhile. If another server has extended it and
// this server has not seen that yet, the transaction fails and nothing happens. Expire reports whether it ended the
// lease.
func (t *Table) Expire(ctx context.Context, d Due) (bool, error) {
	ended, err := t.end(ctx, d.storedLease, Change{Reason: Expired}, nil, kv.ChangedAt(d.beatKey(), d.beatAt))
	if ended {
		t.config.Metrics.Expiries.Inc()
		t.config.Metrics.SweepDelay.Observe(time.Since(d.deadline).Seconds())
	}
	return ended, err
}

// catchUpLimit limits how long a request waits for this server's view to catch up with the store.
const catchUpLimit = 5 * time.Second

// endIfDue ends a lease if its time is up, and reports whether it did. If this server's view does not show in time that
// another server extended or ended the lease, endIfDue fails with [kv.ErrUnavailable].
func (t *Table) endIfDue(ctx context.Context, s storedLease) (bool, error) {
	due, ok := t.overdue(s)
	if !ok {
		return false, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, catchUpLimit, errBehind)
	defer cancel()
	for pause := time.Millisecond; ok; pause = min(2*pause, 50*time.Millisecond) {
		if ended, err := t.Expire(ctx, due); ended || err != nil {
			return ended, err
		}
		// Another server extended or ended it, and this server's view will soon show that.
		if wait.For(ctx, pause) != nil {
			return false, context.Cause(ctx)
		}
		due, ok = t.overdue(s)
	}
	return false, nil
}

// errBehind means that this server's view did not reach a revision of the store in time.
var errBehind = fmt.Errorf("%w: this server does not receive changes", kv.ErrUnavailable)

// overdue reports whether a lease's time is up, as far as this server knows.
func (t *Table) overdue(s storedLease) (Due, bool) {
	t.mirror.mu.Lock()
	defer t.mirror.mu.Unlock()
	h := t.mirror.held[s.Lease]
	if h == nil {
		until, ok := t.mirror.own.past(s.claim)
		return Due{s, s.token, until}, ok // granted by this server, but not in its view yet
	}
	if h.token != s.token || h.beatAt == 0 || h.deadline.After(time.Now()) {
		return Due{}, false
	}
	return h.due(), true
}

func (h *held) due() Due { return Due{h.storedLease(), h.beatAt, h.deadline} }

func (h *held) storedLease() storedLease { return storedLease{h.claim, h.home(), h.token} }
