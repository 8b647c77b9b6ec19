package lock

import (
	"context"
	"slices"
)

// A wait for one of several slots is over when any of their holders leaves, so a probe that
// went through one and came back proves nothing: the others may go on. Then the
// initiator takes a census of all owners, and removes waiters that can go on until none is left:
// a waiter for a name that nobody in the rest holds, or for slots one of which
// nobody in the rest holds. The rest is the greatest set of waiters that wait for each other, the
// deadlock of the AND-OR model (T. Herman and K. M. Chandy, "A Distributed Procedure to
// Detect AND/OR Deadlock", 1983, find it by messages alone).
//
// A census is no snapshot: its answers come from different moments. So it is taken twice, and only
// acquisitions count that are the same in both. An acquisition never returns to an earlier state,
// so between the two, all of them were in these states at once.

// standing is an acquisition that waits, with all that is held meanwhile: by itself, and by the
// leases around it.
type standing struct {
	Waiter
	holds []Want
}

// census returns the waiters of all owners, and what they hold.
func (m *Manager) census(ctx context.Context) (all []*standing) {
	holders, waiters, _ := m.Inspect(ctx)
	for _, w := range waiters {
		s := &standing{Waiter: w, holds: append([]Want(nil), w.Held...)}
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

// knotted reports whether the acquisition is the one to end of those who wait for each other: the
// youngest of a set from which no way leads out, so that no other set's end sets it free.
func (w *waiting) knotted(ctx context.Context) bool {
	before := w.m.census(ctx)
	var now []*standing
	for _, s := range w.m.census(ctx) {
		for _, b := range before {
			if s.LeaseID == b.LeaseID && sameWants(s.holds, b.holds) && sameWants(s.Awaits, b.Awaits) {
				now = append(now, s)
				break
			}
		}
	}
	return youngestOfKnot(now, w.LeaseID)
}

func sameWants(a, b []Want) bool {
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			return false
		}
	}
	return len(a) == len(b)
}

func youngestOfKnot(all []*standing, id string) bool {
	all = stuck(all)
	mine := reachable(all, id)
	for _, s := range mine {
		if age(s.Since, s.LeaseID, mine[0].Since, id) > 0 || len(reachable(all, s.LeaseID)) < len(mine) {
			return false
		}
	}
	return len(mine) > 0
}

// stuck returns those who cannot go on before one of them ends.
func stuck(all []*standing) []*standing {
	for {
		var rest []*standing
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

// canGoOn reports whether nobody of all holds one of the names that it awaits, or the only one.
func (s *standing) canGoOn(all []*standing) bool {
	for _, a := range s.Awaits {
		if len(inTheWay(all, a)) == 0 {
			return true
		}
	}
	return len(s.Awaits) == 0
}

// inTheWay returns those who hold what is wanted. One who would share it, while another waits for
// it exclusively, waits for all who hold it: see [waiting.pass].
func inTheWay(all []*standing, want Want) (found []*standing) {
	for _, s := range all {
		for _, a := range s.Awaits {
			if a == (Want{want.Name, Exclusive}) {
				want = a
			}
		}
	}
	for _, s := range all {
		if bar(s.holds, want) {
			found = append(found, s)
		}
	}
	return found
}

// reachable returns the one of that id, where it is among all, and after it those who are in its
// way, who are in theirs, and so on.
func reachable(all []*standing, id string) (found []*standing) {
	for _, s := range all {
		if s.LeaseID == id {
			found = append(found, s)
			break
		}
	}
	for i := 0; i < len(found); i++ {
		for _, a := range found[i].Awaits {
			for _, s := range inTheWay(all, a) {
				if !slices.Contains(found, s) {
					found = append(found, s)
				}
			}
		}
	}
	return found
}
