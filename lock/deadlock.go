package lock

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/lock/internal/waitgraph"
)

// Probe asks which acquisitions block a waiting acquisition, and which ones block those. An acquisition that receives
// its own probe is part of a deadlock.
type Probe struct {
	Initiator string    // the lease id of the acquisition that began the probe
	Since     time.Time // when the initiator began to wait, in whole milliseconds
	Wants     []Want    // the locks that the sender of this message waits for
	Slots     bool      // a sender on the way waits for one of several slots
}

// waiting is an acquisition that waits. The graph knows what it holds and awaits at present.
type waiting struct {
	Waiter
	graph *waitgraph.Wait[Want]
}

// search returns the search for deadlocks among the acquisitions of this owner and of all others.
func (m *Manager) search() *waitgraph.Search[Want] {
	return &waitgraph.Search[Want]{Conflict: conflict, Exclusive: exclusive, Post: m.post, Waiters: m.collectWaiters, NewRound: NewID, Go: m.work.Go, Life: m.life}
}

// post sends a probe to all other owners.
func (m *Manager) post(round string, p waitgraph.Probe[Want]) {
	if m.config.Channel != nil {
		_ = m.config.Channel.Post(Message{Kind: WhoIsInTheWay, Round: round, Probe: Probe(p)})
	}
}

// conflict reports whether two clients cannot have both.
func conflict(held, want Want) bool {
	return held.Name == want.Name && (held.Mode == Exclusive || want.Mode == Exclusive)
}

func exclusive(w Want) Want { return Want{w.Name, Exclusive} }

// waits registers a waiting request, and lets it report its progress to the search for deadlocks. The search runs until the caller calls
// done. It ends the acquisition if it chooses it as the victim of a deadlock.
func (a *acquisition) waits(ctx context.Context, r *arbitration) (done func()) {
	m, t := a.m, r.target
	g := &waitgraph.Wait[Want]{ID: a.opts.LeaseID, Since: m.config.Clock.Now().Wall, Around: a.within.holdsAround(), End: func() { a.end(t.deadlocked()) },
		Queued: func(ctx context.Context, w Want) bool {
			s, err := t.locker.Query(ctx)
			return err == nil && lists(s.Pending, w)
		}}
	w := &waiting{graph: g, Waiter: Waiter{Resource: t.resource, Mode: t.mode, OwnerID: m.config.OwnerID, OwnerName: m.config.OwnerName,
		LeaseID: g.ID, Paths: t.places, Slots: t.slots, Within: a.within.id(), Since: g.Since}}
	r.onProgress = g.At
	stop := m.deadlocks.Begin(ctx, g, t.wants[:min(1, len(t.wants))])
	m.mu.Lock()
	m.waiting[a] = w
	m.mu.Unlock()
	return func() {
		stop()
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.waiting, a)
	}
}

// deadlocked is the error of the victim.
func (t *target) deadlocked() error {
	return &Error{Code: CodeDeadlock, Operation: OpAcquire, Resource: t.resource,
		Detail: "it and others waited for each other, and it began last; release what you hold, or take it all at once with paths"}
}

// collectWaiters returns the waiters of all owners, and the locks they hold.
func (m *Manager) collectWaiters(ctx context.Context) (all []*waitgraph.Waiter[Want]) {
	holders, waiters, _ := m.Inspect(ctx)
	for _, w := range waiters {
		s := &waitgraph.Waiter[Want]{ID: w.LeaseID, Since: w.Since, Holds: append([]Want(nil), w.Held...), Awaits: w.Awaits}
		all = append(all, s)
		within := w.Within
		for range holders { // no chain has more links
			for i := range holders {
				if h := &holders[i]; h.LeaseID == within && within != "" {
					s.Holds, within = append(s.Holds, h.Wants...), h.Within
				}
			}
		}
	}
	return all
}

// selfWait returns a lease of this owner, outside the acquisition's chain, that holds a lock the acquisition waits for.
func (m *Manager) selfWait(a *acquisition, t *target) (found *heldLease) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, h := range m.leases {
		for _, held := range h.wants {
			for _, w := range t.wants {
				if conflict(held, w) && !a.within.inChain(h) {
					found = h
				}
			}
		}
	}
	return found
}

// lists reports whether the list of a Locker has an entry for a want.
func lists(infos []Info, w Want) bool {
	for _, i := range infos {
		if i.Name == w.Name && i.Mode == w.Mode {
			return true
		}
	}
	return false
}
