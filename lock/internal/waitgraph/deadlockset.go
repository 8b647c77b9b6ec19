package waitgraph

import (
	"context"
	"slices"
	"time"
)

// A wait for one of several slots ends when any of their holders leaves, so a probe that passed such a wait and came
// back proves nothing: other holders may go on. The initiator then collects the waiters of all owners. It removes
// waiters that can go on until none is left: a waiter for a name that no remaining waiter holds, or for slots of which
// one is held by no remaining waiter. The rest is the greatest set of waiters that wait for each other, the deadlock of
// the AND-OR model (T. Herman and K. M. Chandy, "A Distributed Procedure to Detect AND/OR Deadlock", 1983, find it by
// messages alone).
//
// The collected answers come from different moments. Therefore they are collected twice, and only acquisitions that are
// the same in both count. An acquisition never returns to an earlier state, so between the two collections all of them
// were in these states at once.

// Waiter is the state of an acquisition that waits.
type Waiter[L comparable] struct {
	ID     string
	Since  time.Time
	Holds  []L // all locks that it and the leases around it hold
	Awaits []L // the lock that it waits for next, or slots, of which it needs one
}

// isVictim reports whether the acquisition is the victim among the waiters that wait for each other: the youngest of a
// set that waits only for itself, so that the end of no other set can free it.
func (w *Wait[L]) isVictim(ctx context.Context) bool {
	before := w.search.Waiters(ctx)
	var now []*Waiter[L]
	for _, s := range w.search.Waiters(ctx) {
		for _, b := range before {
			if s.ID == b.ID && slices.Equal(s.Holds, b.Holds) && slices.Equal(s.Awaits, b.Awaits) {
				now = append(now, s)
				break
			}
		}
	}
	return w.search.youngestOfDeadlock(now, w.ID)
}

func (s *Search[L]) youngestOfDeadlock(all []*Waiter[L], id string) bool {
	all = s.deadlockSet(all)
	mine := s.reachable(all, id)
	for _, w := range mine {
		if age(w.Since, w.ID, mine[0].Since, id) > 0 || len(s.reachable(all, w.ID)) < len(mine) {
			return false
		}
	}
	return len(mine) > 0
}

// deadlockSet returns the waiters that cannot go on before one of them ends.
func (s *Search[L]) deadlockSet(all []*Waiter[L]) []*Waiter[L] {
	for {
		var rest []*Waiter[L]
		for _, w := range all {
			if !s.canGoOn(w, all) {
				rest = append(rest, w)
			}
		}
		if len(rest) == len(all) {
			return rest
		}
		all = rest
	}
}

// canGoOn reports whether no waiter of all holds one of the names that it awaits, or the only one.
func (s *Search[L]) canGoOn(w *Waiter[L], all []*Waiter[L]) bool {
	for _, a := range w.Awaits {
		if len(s.blockers(all, a)) == 0 {
			return true
		}
	}
	return len(w.Awaits) == 0
}

// blockers returns the waiters that hold a wanted name. A shared request behind an exclusive one waits for all holders
// of the name: see [Wait.pass].
func (s *Search[L]) blockers(all []*Waiter[L], want L) (found []*Waiter[L]) {
	for _, w := range all {
		for _, a := range w.Awaits {
			if a == s.Exclusive(want) {
				want = a
			}
		}
	}
	for _, w := range all {
		if s.conflicts(w.Holds, want) {
			found = append(found, w)
		}
	}
	return found
}

// reachable returns the waiter with this id, if it is among all, followed by the waiters that block it, those that
// block these, and so on.
func (s *Search[L]) reachable(all []*Waiter[L], id string) (found []*Waiter[L]) {
	for _, w := range all {
		if w.ID == id {
			found = append(found, w)
			break
		}
	}
	for i := 0; i < len(found); i++ {
		for _, a := range found[i].Awaits {
			for _, w := range s.blockers(all, a) {
				if !slices.Contains(found, w) {
					found = append(found, w)
				}
			}
		}
	}
	return found
}
