package lock

import (
	"context"
	"slices"
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

// waiterState is an acquisition that waits, with all locks that it and the leases around it hold.
type waiterState struct {
	Waiter
	holds []Want
}

// collectWaiters returns the waiters of all owners, and the locks they hold.
func (m *Manager) collectWaiters(ctx context.Context) (all []*waiterState) {
	holders, waiters, _ := m.Inspect(ctx)
	for _, w := range waiters {
		s := &waiterState{Waiter: w, holds: append([]Want(nil), w.Held...)}
		all = append(all, s)
		within := w.Within
		for range holders { // no chain has more links
			for i := range holders {
				if h := &holders[i]; h.LeaseID == within && within != "" {
					s.holds, within = append(s.holds, h.Wants...), h.Within
				}
			}
		}
	}
	return all
}

// isVictim reports whether the acquisition is the victim among the waiters that wait for each other: the youngest of a
// set that waits only for itself, so that the end of no other set can free it.
func (w *waiting) isVictim(ctx context.Context) bool {
	before := w.m.collectWaiters(ctx)
	var now []*waiterState
	for _, s := range w.m.collectWaiters(ctx) {
		for _, b := range before {
			if s.LeaseID == b.LeaseID && sameWants(s.holds, b.holds) && sameWants(s.Awaits, b.Awaits) {
				now = append(now, s)
				break
			}
		}
	}
	return youngestOfDeadlock(now, w.LeaseID)
}

func sameWants(a, b []Want) bool {
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			return false
		}
	}
	return len(a) == len(b)
}

func youngestOfDeadlock(all []*waiterState, id string) bool {
	all = deadlockSet(all)
	mine := reachable(all, id)
	for _, s := range mine {
		if age(s.Since, s.LeaseID, mine[0].Since, id) > 0 || len(reachable(all, s.LeaseID)) < len(mine) {
			return false
		}
	}
	return len(mine) > 0
}

// deadlockSet returns the waiters that cannot go on before one of them ends.
func deadlockSet(all []*waiterState) []*waiterState {
	for {
		var rest []*waiterState
		for _, s := range all {
			if !s.canGoOn(all) {
				rest = append(rest, s)
			}
		}
		if len(rest) == len(all) {
			return rest
		}
		all = rest
	}
}

// canGoOn reports whether no waiter of all holds one of the names that it awaits, or the only one.
func (s *waiterState) canGoOn(all []*waiterState) bool {
	for _, a := range s.Awaits {
		if len(blockers(all, a)) == 0 {
			return true
		}
	}
	return len(s.Awaits) == 0
}

// blockers returns the waiters that hold a wanted name. A shared request behind an exclusive one waits for all holders
// of the name: see [waiting.pass].
func blockers(all []*waiterState, want Want) (found []*waiterState) {
	for _, s := range all {
		for _, a := range s.Awaits {
			if a == (Want{want.Name, Exclusive}) {
				want = a
			}
		}
	}
	for _, s := range all {
		if conflicts(s.holds, want) {
			found = append(found, s)
		}
	}
	return found
}

// reachable returns the waiter with this id, if it is among all, followed by the waiters that block it, those that
// block these, and so on.
func reachable(all []*waiterState, id string) (found []*waiterState) {
	for _, s := range all {
		if s.LeaseID == id {
			found = append(found, s)
			break
		}
	}
	for i := 0; i < len(found); i++ {
		for _, a := range found[i].Awaits {
			for _, s := range blockers(all, a) {
				if !slices.Contains(found, s) {
					found = append(found, s)
				}
			}
		}
	}
	return found
}
