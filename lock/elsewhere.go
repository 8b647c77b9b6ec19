package lock

import "context"

// Elsewhere locks places of the project between machines too, once they are locked on this one.
type Elsewhere interface {
	// Here returns the Locker of this machine, for the names that the resource of the backend has.
	Here() Locker
	// Lock locks a place that is locked on this machine, by local: nobody here is in its way. It fails as
	// [Locker].Request does, and with ErrDeadlock. If local is lost, Lock returns, because
	// waiting is useless then; local stays the caller's.
	Lock(ctx context.Context, p *Place, local Grant, ifAvailable bool) (Far, error)
}

// Place is what a lease has to have elsewhere.
type Place struct {
	LeaseID string
	// Paths are taken all or nothing. There are none where the leases around it keep everybody
	// else out already; then it needs a token, and to be kept, as every other.
	Paths  [][]string
	Mode   Mode
	Slots  int  // more than 1: one of so many
	Nested bool // other leases are held while it is waited for
	Steal  bool // it was stolen from its holder on this machine, whose remote locks pass to this lease
}

// Far is a place that is held elsewhere, and the Records of the lease that is made of it. It is released before
// the lock of this machine. Lost may be nil: the next renewal then reports a remote loss.
type Far interface {
	Grant
	Records
	Slot() int
}

// lockElsewhere completes what was granted on this machine.
func (s *spot) lockElsewhere(ctx context.Context, local Grant, r Request) (Grant, error) {
	p := s.far
	p.Steal = r.Steal
	far, err := s.b.Elsewhere.Lock(ctx, &p, local, r.IfAvailable)
	if err != nil {
		_ = local.Release(context.WithoutCancel(ctx))
		return nil, err
	}
	g := newBundle(0, local, far)
	g.local, g.far = local, far
	return g, nil
}

// missing leaves out of a place what the leases around it keep everybody else out of already. It fails where one
// of them is in the way: elsewhere, a place with slots admits nothing but these, at it and below it.
func (h *holding) missing(p *Place) *Error {
	var paths [][]string
	for _, path := range p.Paths {
		covered, barred := h.around(path, p)
		if barred && !covered {
			return &Error{Code: CodeUnsupported, Operation: OpAcquire,
				Detail: "on the server a place with slots admits nothing else at it or below it, and a lease around this one is in the way; take it outside of that"}
		}
		if !covered {
			paths = append(paths, path)
		}
	}
	p.Paths, p.Nested = paths, h != nil
	return nil
}

// around returns what the lease and those around it mean for another lease at a path: whether they already exclude everybody
// else, and whether their remote locks bar it.
func (h *holding) around(path []string, p *Place) (covered, barred bool) {
	for ; h != nil; h = h.within {
		slots := h.opts.Slots > 1
		for _, held := range h.opts.places() {
			above, below := begins(path, held), begins(held, path) // both where it is the same
			covered = covered || above && h.opts.Mode == Exclusive && !slots || below && p.Mode == Shared
			barred = barred || above && slots && !below || below && p.Slots > 1 && !(above && slots)
		}
	}
	return covered, barred
}

// begins reports whether a path is the other one or below it.
func begins(path, with []string) bool {
	for i, component := range with {
		if i == len(path) || path[i] != component {
			return false
		}
	}
	return true
}
