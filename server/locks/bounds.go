package locks

import (
	"context"
	"slices"

	"github.com/holdfast-dev/holdfast/server/kv"
)

var errTooWide = &InvalidError{"too many paths at once"}

// tooWide reports whether a request needs more conditions than a transaction can have. One that must wait needs fewer, and would wait in
// vain if it lost its place; its lease could need too many to end.
func (t *ticket) tooWide() bool {
	components := 0
	for _, p := range t.Paths {
		components += len(p)
	}
	return components > kv.MaxOps/3 && len(t.preconditions().conditions) > kv.MaxOps
}

// mayHaveMore returns an error if the holder of a ticket, or its user, has reached a limit.
func (t *Table) mayHaveMore(ctx context.Context, own *ticket, r Request) error {
	if err := t.withinLimits(own, r); err != nil {
		return err
	}
	if !own.named() || !t.remembersMuch(own.Holder) {
		return nil
	}
	// A ticket that the store remembers already adds nothing.
	result, err := t.store.Commit(ctx, kv.Txn{Then: []kv.Op{kv.Read(own.stub), kv.Read(own.gone())}})
	if err == nil && len(result.Reads[0])+len(result.Reads[1]) == 0 {
		err = ErrTooManyTickets
	}
	return err
}

// withinLimits checks the limits of leases and of waiting requests, from this server's view.
func (t *Table) withinLimits(own *ticket, r Request) error {
	c, m := t.config, t.mirror
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := t.mayHold(own); err != nil && !m.takesPlace(own, r) {
		return err
	}
	_, waiting := m.graph.Count(own.Holder)
	if r.Wait > 0 && c.MaxWaiting > 0 && waiting >= c.MaxWaiting && !m.waits(own) {
		return ErrTooMany
	}
	return nil
}

// mayGrow returns [kv.ErrReserved] if the remaining space of the store is for the leases that exist. A place in the queue takes space, too. A
// request that repeats or replaces a lease adds nothing, nor does one that waits already.
func (t *Table) mayGrow(own *ticket, r Request) error {
	if !t.reservedForLeases() {
		return nil
	}
	t.mirror.mu.Lock()
	defer t.mirror.mu.Unlock()
	if t.mirror.takesPlace(own, r) || t.mirror.waits(own) {
		return nil
	}
	return kv.ErrReserved
}

// mayHold returns an error if the holder of a ticket, or its user, has as many leases as it may. The caller holds the mirror's mutex.
func (t *Table) mayHold(own *ticket) error {
	held, _ := t.mirror.graph.Count(own.Holder)
	switch {
	case own.User != "" && own.userLocks > 0 && t.mirror.users[own.User] >= own.userLocks:
		return ErrTooManyOfUser
	case t.config.MaxHeld > 0 && held >= t.config.MaxHeld:
		return ErrTooMany
	}
	return nil
}

// takesPlace reports whether a request repeats or replaces a lease of its holder, so that it adds none.
func (m *mirror) takesPlace(own *ticket, r Request) bool {
	claims, _ := m.inTheWay(own.claim)
	return slices.ContainsFunc(claims, func(s storedLease) bool {
		return r.supersedes(s) && (r.Exact || r.Fresh && !s.Exact || s.key == own.home())
	})
}

// waits reports whether an earlier request with the ticket is in the queue, which this one replaces.
func (m *mirror) waits(own *ticket) bool {
	return own.named() && m.graph.AnyTicket(own.Holder, func(lease string) bool { return m.tickets[lease].Ticket == own.Ticket })
}

// remembersMuch reports whether the store remembers the maximum number of tickets of a holder.
func (t *Table) remembersMuch(holder string) bool {
	t.mirror.mu.Lock()
	defer t.mirror.mu.Unlock()
	return t.config.MaxTickets > 0 && t.mirror.kept[holder] >= t.config.MaxTickets
}

// mayForbid returns an error if giving up a ticket without a place in the queue would only add to the holder's
// remembered tickets, or take space that is for leases. A lease that was granted under the ticket is released in any case.
func (t *Table) mayForbid(ctx context.Context, own *ticket) error {
	var refusal error
	switch {
	case t.remembersMuch(own.Holder):
		refusal = ErrTooManyTickets
	case t.reservedForLeases():
		refusal = kv.ErrReserved
	default:
		return nil
	}
	if gone, _, err := t.store.Get(ctx, own.gone()); err != nil || gone.Found() {
		return err // it is remembered already
	}
	if err := t.catchUp(ctx); err != nil {
		return err
	}
	t.mirror.mu.Lock()
	defer t.mirror.mu.Unlock()
	if len(t.mirror.asked[askedKey(own.claim)]) == 0 {
		return refusal
	}
	return nil
}

// reservedForLeases reports whether the store has no space for further leases.
func (t *Table) reservedForLeases() bool {
	return t.config.ReservedForLeases != nil && t.config.ReservedForLeases()
}
