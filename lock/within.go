package lock

import (
	"context"
	"errors"
)

// enclosing is the key under which a context carries the lease of a manager.
type enclosing struct{ *Manager }

var errEnclosingEnded = errors.New("the lease that encloses it has ended")

// Within returns a context in which acquisitions of the lease's manager are nested in the lease. The names that the
// lease and the leases around it hold count as granted. A request that needs such a name exclusively fails with
// ErrReentrant. A cycle of waiters is found exactly. The caller keeps the lease while it waits. A nested lease ends
// with the one around it at the latest.
//
// The context that [Manager.With] passes is of this kind.
func Within(ctx context.Context, lease Lease) context.Context {
	if lease.held == nil {
		return ctx
	}
	return context.WithValue(ctx, enclosing{lease.held.m}, lease.held)
}

// within returns the lease that ctx carries, or nil.
func (m *Manager) within(ctx context.Context) (*heldLease, *Error) {
	h, _ := ctx.Value(enclosing{m}).(*heldLease)
	if h != nil && h.life.Err() != nil {
		return nil, invalid("within", "must be a lease that is still held")
	}
	return h, nil
}

func (h *heldLease) id() string {
	if h == nil {
		return ""
	}
	return h.opts.LeaseID
}

// holds reports whether a lease or one around it holds a name, in whatever mode.
func (h *heldLease) holds(name string) bool {
	for ; h != nil; h = h.within {
		if named(h.wants, name) {
			return true
		}
	}
	return false
}

// inChain reports whether other is the lease or one around it.
func (h *heldLease) inChain(other *heldLease) bool {
	for ; h != nil; h = h.within {
		if h == other {
			return true
		}
	}
	return false
}

// holdsAround returns the names that a lease and the leases around it hold.
func (h *heldLease) holdsAround() (all []Want) {
	for ; h != nil; h = h.within {
		all = append(all, h.wants...)
	}
	return all
}

// enclosed is closed when the lease around this one ends; nil if there is none.
func (h *heldLease) enclosed() <-chan struct{} {
	if h.within == nil {
		return nil
	}
	return h.within.life.Done()
}

// stillWithin fails if a lease around this one ended before this one got its token. That token may be higher than the
// token of the next holder, so no lease may begin with it. On the server, an outer lease may cover a place of this one, and
// the server may have ended that lease. Only a renewal shows that.
func (h *heldLease) stillWithin(ctx context.Context, now Instant) error {
	covered := h.target.backend.Remote != nil && len(h.target.remote.Paths) < len(h.target.places)
	for o := h.within; o != nil; o = o.within {
		err := stillGranted(ctx, o.grant, now)
		if err == nil && (covered || o.lapse() != nil) {
			if _, failed := o.renew(ctx); o.life.Err() != nil {
				<-ctx.Done() // it ends with the lease around it
				return context.Cause(ctx)
			} else if failed != nil {
				err = errNoAnswer
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// named reports whether a name is among wants.
func named(wants []Want, name string) bool {
	for _, w := range wants {
		if w.Name == name {
			return true
		}
	}
	return false
}
