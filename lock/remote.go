package lock

import "context"

// RemoteLocker also locks places of the project between machines, after they are locked on this machine.
type RemoteLocker interface {
	// Local returns the Locker of this machine, for names below the resource of the backend.
	Local() Locker
	// Lock locks a place between machines. local already locks it on this machine, so no other client of this machine
	// blocks it. It returns the errors of [Locker].Request, and ErrDeadlock. If local is lost, Lock returns, because
	// waiting is useless then. The caller keeps local.
	Lock(ctx context.Context, p *Place, local Grant, ifAvailable bool) (RemoteGrant, error)
}

// Place is the part of a lease that other machines must grant.
type Place struct {
	LeaseID string
	// Paths are taken all or nothing. They are empty if the leases around it already exclude everybody else. The place
	// then still needs a token and a renewal, as every other place does.
	Paths  [][]string
	Mode   Mode
	Slots  int   // more than 1: one of that many
	Within int64 // the token of the enclosing lease, or 0
	Steal  bool  // it was stolen from its holder on this machine, whose remote locks pass to this lease
}

// RemoteGrant is a place that is locked between machines, and the Records of its lease. It is released before the lock of this
// machine. Lost may be nil: the next renewal then reports a remote loss.
type RemoteGrant interface {
	Grant
	Records
	Slot() int
}

// missing sets the paths of p to the places that the leases around it do not lock exclusively already. It fails if one
// of these leases blocks a place: between machines, a place with slots admits nothing but its slots, at it and below it.
func (h *heldLease) missing(places [][]string, p *Place) *Error {
	for _, path := range places {
		covered, barred := h.around(path, p)
		if barred && !covered {
			return &Error{Code: CodeUnsupported, Operation: OpAcquire,
				Detail: "on the server a place with slots admits nothing else at it or below it, and a lease around this one is in the way; acquire it outside that lease"}
		}
		if !covered {
			p.Paths = append(p.Paths, path)
		}
	}
	return nil
}

// around reports how the lease and those around it affect another lease at a path: whether they already exclude
// everybody else, and whether their remote locks block it.
func (h *heldLease) around(path []string, p *Place) (covered, barred bool) {
	for ; h != nil; h = h.within {
		slots := h.opts.Slots > 1
		for _, held := range h.opts.places() {
			above, below := begins(path, held), begins(held, path) // both are true for the same path
			covered = covered || above && h.opts.Mode == Exclusive && !slots || below && p.Mode == Shared
			barred = barred || above && slots && !below || below && p.Slots > 1 && !(above && slots)
		}
	}
	return covered, barred
}

// begins reports whether a path equals the other one or is below it.
func begins(path, with []string) bool {
	for i, component := range with {
		if i == len(path) || path[i] != component {
			return false
		}
	}
	return true
}
