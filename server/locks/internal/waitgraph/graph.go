// Package waitgraph records which leases and waiting requests conflict, and their paths. It answers three questions:
// what does a request wait for, may it go ahead, and does a new edge close a cycle. The cost of each answer does not
// grow with the number of waiters.
//
// # Edges
//
// Two requests conflict if they name the same path and not both are shared, or if one is exclusive on a path above
// the other's. A waiter waits for every lease that conflicts with it, and for every earlier request that conflicts
// with it. Slots are an exception: if a place has the same number of slots for both, the waiter needs only one slot,
// so it waits only while all are taken. Edges connect owners: a waiter for an owner waits for everything that this
// owner waits for. An owner never waits for itself.
//
// # Cycles
//
// A cycle of leases alone is a deadlock. The request whose edge closes it is doomed. If a lease closes it, the
// owner's requests that wait in the cycle are doomed. There was no deadlock before the edge, so every deadlock passes
// through the owner of the new edge, and one search from that owner finds it. A cycle that needs the order of the
// line is not a deadlock: the member that would wait for a place in line goes ahead.
package waitgraph

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Want is a lease that an owner has or requests.
type Want struct {
	ID    string // of the lease, even while it is only requested
	Owner string
	Group string // owners of one group are counted together; cycles do not depend on it
	Paths [][]string
	// Shared wants admit other shared wants. Slots is how many owners an exclusive want admits; 0 and 1 mean one.
	Shared bool
	Slots  int
}

// Claim is a lease. Slot is the slot that it holds.
type Claim struct {
	Want
	Slot int
}

// Ticket is a request in line.
type Ticket struct {
	Want
	// Place orders the line. Tickets at the same place do not wait for each other.
	Place int64
	// Doomed tickets close a deadlock and are about to leave. Nobody waits for them.
	Doomed bool
}

// Graph is not safe for concurrent use. Callers must not change a claim after adding it.
type Graph struct {
	claims  *claimNode
	lines   *lineNode
	held    map[string]*Claim
	waiting map[string]*Ticket
	owners  owners
	groups  owners
	steps   int // leases and tickets that the searches for cycles have looked at, which is their cost
}

type owner struct {
	held    map[*Claim]struct{}
	waiting map[*Ticket]struct{}
}

// New returns an empty graph.
func New() *Graph {
	return &Graph{
		claims: &claimNode{}, lines: &lineNode{},
		held: map[string]*Claim{}, waiting: map[string]*Ticket{}, owners: owners{}, groups: owners{},
	}
}

// owners are owners, or groups of owners, by their names.
type owners map[string]*owner

func (all owners) of(name string) *owner {
	o := all[name]
	if o == nil {
		o = &owner{map[*Claim]struct{}{}, map[*Ticket]struct{}{}}
		all[name] = o
	}
	return o
}

// remove removes a lease or a ticket, nil for none, and the owner that has nothing else.
func (all owners) remove(name string, c *Claim, t *Ticket) {
	o := all[name]
	delete(o.held, c)
	delete(o.waiting, t)
	if len(o.held)+len(o.waiting) == 0 {
		delete(all, name)
	}
}

// Hold adds a lease. It replaces a lease with the same ID.
func (g *Graph) Hold(c *Claim) {
	g.Release(c.ID)
	g.held[c.ID] = c
	g.owners.of(c.Owner).held[c] = struct{}{}
	g.groups.of(c.Group).held[c] = struct{}{}
	for _, p := range c.Paths {
		g.claims.reach(p).add(c)
	}
}

// Release removes a lease.
func (g *Graph) Release(id string) {
	c := g.held[id]
	if c == nil {
		return
	}
	delete(g.held, id)
	g.owners.remove(c.Owner, c, nil)
	g.groups.remove(c.Group, c, nil)
	for _, p := range c.Paths {
		g.claims.remove(p, c)
	}
}

// Join adds a ticket. It replaces a ticket with the same ID.
func (g *Graph) Join(t *Ticket) {
	g.Leave(t.ID)
	g.waiting[t.ID] = t
	g.owners.of(t.Owner).waiting[t] = struct{}{}
	g.groups.of(t.Group).waiting[t] = struct{}{}
	for _, p := range t.Paths {
		g.lines.add(p, t)
	}
}

// Leave removes a ticket.
func (g *Graph) Leave(id string) {
	t := g.waiting[id]
	if t == nil {
		return
	}
	delete(g.waiting, id)
	g.owners.remove(t.Owner, nil, t)
	g.groups.remove(t.Group, nil, t)
	for _, p := range t.Paths {
		g.lines.remove(p, t)
	}
}

// Ticket returns a ticket, or nil.
func (g *Graph) Ticket(id string) *Ticket { return g.waiting[id] }

// Holds reports whether an owner has a lease.
func (g *Graph) Holds(name string) bool {
	o := g.owners[name]
	return o != nil && len(o.held) > 0
}

// Count returns the numbers of a group's leases and tickets.
func (g *Graph) Count(group string) (held, waiting int) {
	if o := g.groups[group]; o != nil {
		return len(o.held), len(o.waiting)
	}
	return 0, 0
}

// Held returns the IDs of a group's leases.
func (g *Graph) Held(group string) (ids []string) {
	if o := g.groups[group]; o != nil {
		for c := range o.held {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// AnyTicket reports whether f returns true for the ID of one of a group's tickets.
func (g *Graph) AnyTicket(group string, f func(id string) bool) bool {
	if o := g.groups[group]; o != nil {
		for t := range o.waiting {
			if f(t.ID) {
				return true
			}
		}
	}
	return false
}

// Conflicts are the conflicts with a request. If the request may go ahead, only Slot is set.
type Conflicts struct {
	// Ticket is the last conflicting ticket ahead in line.
	Ticket *Ticket
	// Claims is one conflicting lease, or all leases of which one must end.
	Claims []*Claim
	// Slot is the lowest free slot.
	Slot int
}

// Free reports whether the request may go ahead.
func (c Conflicts) Free() bool { return c.Ticket == nil && len(c.Claims) == 0 }

// Ahead returns what a ticket waits for. It skips tickets in line that wait for the ticket's own owner.
func (g *Graph) Ahead(id string) Conflicts {
	t := g.waiting[id]
	if t == nil {
		return Conflicts{}
	}
	if last := g.lastAhead(t); last != nil {
		return Conflicts{Ticket: last}
	}
	return g.closedBy(t.Want)
}

// Before returns the conflicts with a request that is not in line.
func (g *Graph) Before(w Want) Conflicts {
	for l := range g.lines.against(w) {
		if n := len(l.list); n > 0 {
			return Conflicts{Ticket: l.list[n-1]}
		}
	}
	return g.closedBy(w)
}

// Wanted reports whether a ticket waits for a lease, or would wait for it.
func (g *Graph) Wanted(w Want) bool {
	for l := range g.lines.against(w) {
		if len(l.list) > 0 {
			return true
		}
	}
	return false
}

// Holders calls f with each lease that conflicts with w, once, until f returns false. It reports whether f saw all.
// Holders of slots are included only while no slot is free.
func (g *Graph) Holders(w Want, f func(*Claim) bool) (all bool) {
	seen, mates := map[*Claim]bool{}, mates{}
	for c, same := range g.claims.against(w) {
		switch {
		case seen[c]:
			continue
		case same && shareSlots(w, c):
			mates[c] = struct{}{}
			continue
		}
		seen[c] = true
		delete(mates, c) // it is above or below another path
		if !f(c) {
			return false
		}
	}
	if _, free := mates.freeSlot(w); !free {
		for c := range mates {
			if !f(c) {
				return false
			}
		}
	}
	return true
}

// Conflicts reports whether a lease conflicts with a want without slots.
func (g *Graph) Conflicts(w Want, id string) bool {
	c := g.held[id]
	if c == nil {
		return false
	}
	for _, p := range w.Paths {
		for _, q := range c.Paths {
			n := min(len(p), len(q))
			if !slices.Equal(p[:n], q[:n]) {
				continue
			}
			above, below := len(q) < len(p), len(q) > len(p)
			if above && !c.Shared || below && !w.Shared || !above && !below && (!c.Shared || !w.Shared) {
				return true
			}
		}
	}
	return false
}

// Waiting returns the first n tickets that conflict with w, in the order of their places and then of their IDs. It
// omits tickets before a place, and those that keep refuses.
func (g *Graph) Waiting(w Want, place int64, n int, keep func(id string) bool) []*Ticket {
	var list []*Ticket
	seen := map[*Ticket]bool{}
	for l := range g.lines.against(w) {
		taken, last := 0, int64(0)
		for _, t := range l.list[l.before(place):] {
			if taken >= n && t.Place != last {
				break
			}
			if !keep(t.ID) {
				continue
			}
			taken, last = taken+1, t.Place
			if !seen[t] {
				seen[t] = true
				list = append(list, t)
			}
		}
	}
	slices.SortFunc(list, func(a, b *Ticket) int { return cmp.Or(cmp.Compare(a.Place, b.Place), strings.Compare(a.ID, b.ID)) })
	return list[:min(len(list), n)]
}

func (g *Graph) lastAhead(t *Ticket) *Ticket {
	var last *Ticket
	var stuck map[string]bool // computed for the first ticket ahead
	for l := range g.lines.against(t.Want) {
		for i := l.before(t.Place) - 1; i >= 0; i-- {
			ahead := l.list[i]
			if last != nil && ahead.Place <= last.Place {
				break
			}
			if ahead.Owner != t.Owner && g.Holds(t.Owner) {
				if stuck == nil {
					stuck = g.stuckOn(t.Owner, t)
				}
				if stuck[ahead.Owner] {
					continue
				}
			}
			last = ahead
			break
		}
	}
	return last
}

func (g *Graph) closedBy(w Want) Conflicts {
	mates := mates{}
	for c, same := range g.claims.against(w) {
		if !same || !shareSlots(w, c) {
			return Conflicts{Claims: []*Claim{c}}
		}
		mates[c] = struct{}{}
	}
	slot, free := mates.freeSlot(w)
	if !free {
		return Conflicts{Claims: slices.Collect(maps.Keys(mates))}
	}
	return Conflicts{Slot: slot}
}

// mates are the leases that conflict with a want over slots alone: they are on the same paths, and on none above or below.
type mates map[*Claim]struct{}

// freeSlot returns the lowest slot that none of the leases holds.
func (m mates) freeSlot(w Want) (slot int, free bool) {
	taken := make(map[int]bool, len(m))
	for c := range m {
		taken[c.Slot] = true
	}
	for taken[slot] {
		slot++
	}
	return slot, slot < max(w.Slots, 1)
}

// shareSlots reports whether a lease on the same path as a want leaves room for it: both ask for one of the same number of slots.
func shareSlots(w Want, c *Claim) bool {
	return !w.Shared && !c.Shared && w.Slots > 1 && c.Slots == w.Slots
}
