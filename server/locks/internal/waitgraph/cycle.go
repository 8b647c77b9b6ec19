package waitgraph

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// Effects are the consequences of a new edge.
type Effects struct {
	// Doomed are the tickets that closed a deadlock.
	Doomed []*Ticket
	// Look are tickets that may now go ahead of a waiter, because that waiter waits for them.
	Look []*Ticket
}

// Check looks for cycles through an owner. The caller calls it with the owner of each new ticket and of each new
// lease. Its cost is limited by the waiters for the owner or by what the owner waits for, whichever is less.
func (g *Graph) Check(name string) (e Effects) {
	o := g.owners[name]
	if o == nil || len(o.waiting) == 0 {
		return e
	}
	members := g.cycleThrough(name)
	if len(members) == 0 {
		return e
	}
	if len(o.held) > 0 {
		stuck := g.stuckOn(name, nil)
		for t := range o.waiting {
			if !t.Doomed && g.blockers(t, func(c *Claim) bool { return stuck[c.Owner] }) != nil {
				t.Doomed = true
				e.Doomed = append(e.Doomed, t)
			}
		}
	}
	members[name] = true
	for member := range members {
		if g.Holds(member) {
			for t := range g.owners[member].waiting {
				e.Look = append(e.Look, t)
			}
		}
	}
	return e
}

// blockers returns the owners of the counted leases that block a ticket: one owner, or one for each of the slots. While all of them count, the
// ticket can never go ahead. There is none if it can.
func (g *Graph) blockers(t *Ticket, counts func(*Claim) bool) (owners []string) {
	taken := map[int]bool{}
	for c, same := range g.claims.against(t.Want) {
		g.steps++
		if c.Owner == t.Owner || !counts(c) {
			continue
		}
		if !same || !shareSlots(t.Want, c) {
			return []string{c.Owner}
		}
		if !taken[c.Slot] {
			taken[c.Slot] = true
			owners = append(owners, c.Owner)
		}
	}
	if t.Slots > 1 && len(taken) >= t.Slots {
		return owners
	}
	return nil
}

// blockersInLine returns the nearest owner ahead of a ticket that counts, if there is one. Further owners ahead need no look: they block that
// owner, too. The tickets at the front of a line whose owners do not count are passed over once, because an owner never counts again.
func (g *Graph) blockersInLine(t *Ticket, counts func(owner string) bool, passed map[*line]int) []string {
	for l := range g.lines.against(t.Want) {
		blocks := func(ahead *Ticket) bool { return !ahead.Doomed && counts(ahead.Owner) }
		end := l.before(t.Place)
		for passed[l] < end && !blocks(l.list[passed[l]]) {
			g.steps++
			passed[l]++
		}
		for i := end - 1; i >= passed[l]; i-- {
			g.steps++
			if ahead := l.list[i]; blocks(ahead) && ahead.Owner != t.Owner {
				return []string{ahead.Owner}
			}
		}
	}
	return nil
}

// firstBudget is how many edges each of the two searches may see before the other one continues.
const firstBudget = 64

// cycleThrough returns the owners that wait for an owner, if the owner may wait for one of them. Otherwise it returns
// nothing.
func (g *Graph) cycleThrough(name string) map[string]bool {
	for budget := firstBudget; ; budget *= 4 {
		if reaches, done := g.reachesItself(name, budget); done && !reaches {
			return nil
		}
		if b := g.dependents(name, search{line: true, own: true, budget: budget}); b.budget > 0 {
			if !b.closes {
				return nil
			}
			delete(b.set, name)
			return b.set
		}
	}
}

// search limits [Graph.dependents].
type search struct {
	line   bool // waiting in line behind a ticket counts too
	own    bool // also behind the first owner
	direct map[*Claim]bool
	budget int
}

// stuckOn returns the owners that can never continue while an owner releases nothing. With a ticket, the leases that
// conflict with that ticket do not count, but waiting behind a ticket in line does.
func (g *Graph) stuckOn(name string, t *Ticket) map[string]bool {
	s := search{line: t != nil, budget: math.MaxInt, direct: map[*Claim]bool{}}
	if t != nil {
		for c := range g.claims.against(t.Want) {
			if c.Owner == name {
				s.direct[c] = true
			}
		}
	}
	b := g.dependents(name, s)
	if b.either {
		g.reduce(name, b.set, s)
	}
	delete(b.set, name)
	return b.set
}

// reduce removes from a set the owners that do not really wait for an owner: some wait for one of several slots and
// will get one. The set begins with all owners that may wait. The first in line come first, because those behind them wait for them. After
// that, a member is looked at again only when an owner is removed that has kept it in the set.
func (g *Graph) reduce(name string, set map[string]bool, s search) {
	first := map[string]int64{}
	for member := range set {
		first[member] = math.MaxInt64
		for t := range g.owners[member].waiting {
			first[member] = min(first[member], t.Place)
		}
	}
	todo := slices.SortedFunc(maps.Keys(set), func(a, b string) int { return cmp.Compare(first[a], first[b]) })
	kept, passed := map[string]map[string]bool{}, map[*line]int{} // kept: the members that an owner has kept, each once
	for ; len(todo) > 0; todo = todo[1:] {
		member := todo[0]
		if member == name || !set[member] {
			continue
		}
		by := g.stuckBehind(member, name, set, s, passed)
		for _, other := range by {
			if kept[other] == nil {
				kept[other] = map[string]bool{}
			}
			kept[other][member] = true
		}
		if by == nil {
			delete(set, member)
			todo = slices.AppendSeq(todo, maps.Keys(kept[member]))
		}
	}
}

// stuckBehind returns the owners of a set that block one of a member's tickets, see [Graph.reduce].
func (g *Graph) stuckBehind(member, name string, set map[string]bool, s search, passed map[*line]int) (by []string) {
	for t := range g.owners[member].waiting {
		if t.Doomed {
			continue
		}
		by = g.blockers(t, func(c *Claim) bool { return set[c.Owner] && !s.direct[c] })
		if by == nil && s.line {
			by = g.blockersInLine(t, func(o string) bool { return o != name && set[o] }, passed)
		}
		if by != nil {
			return by
		}
	}
	return nil
}

// backward is a search for the owners that wait for an owner.
type backward struct {
	*Graph
	search
	name string
	set  map[string]bool
	todo []string
	// All tickets of a line after this place have been seen: behind the owner itself, or behind others.
	behindIt, behindOthers map[*line]int64

	either bool // some wait for one of several slots, of which another may become free
	closes bool // the owner itself waits for one of the others
}

// dependents finds an owner and all owners that may wait for it. If it has used up its budget of edges, it has not found all of them.
func (g *Graph) dependents(name string, s search) *backward {
	b := &backward{Graph: g, search: s, name: name, set: map[string]bool{name: true}, behindIt: map[*line]int64{}, behindOthers: map[*line]int64{}}
	first := g.owners[name]
	if first == nil {
		return b
	}
	for c := range first.held {
		if !s.direct[c] {
			b.behind(c.Want, -1)
		}
	}
	if s.own {
		b.behindTickets(first)
	}
	for len(b.todo) > 0 && b.budget > 0 {
		next := g.owners[b.todo[len(b.todo)-1]]
		b.todo = b.todo[:len(b.todo)-1]
		for c := range next.held {
			b.behind(c.Want, -1)
		}
		if s.line {
			b.behindTickets(next)
		}
	}
	return b
}

func (b *backward) behindTickets(o *owner) {
	for t := range o.waiting {
		if !t.Doomed {
			b.behind(t.Want, t.Place)
		}
	}
}

// behind adds the owners that wait for a lease, or behind a ticket's place.
func (b *backward) behind(w Want, place int64) {
	seen := b.behindOthers
	if w.Owner == b.name {
		seen = b.behindIt
	}
	for l := range b.lines.against(w) {
		first, end := l.before(place+1), len(l.list)
		if scanned, ok := seen[l]; ok {
			end = max(first, l.before(scanned+1))
		}
		for _, t := range l.list[first:end] {
			b.steps++
			if b.budget--; b.budget <= 0 {
				return
			}
			if t.Doomed || t.Owner == w.Owner {
				continue
			}
			b.either = b.either || place < 0 && w.Slots > 1 && t.Slots > 1
			b.closes = b.closes || t.Owner == b.name
			if !b.set[t.Owner] {
				b.set[t.Owner] = true
				b.todo = append(b.todo, t.Owner)
			}
		}
		if scanned, ok := seen[l]; !ok || place < scanned {
			seen[l] = place
		}
	}
}

// forward is a search for the owners that an owner waits for.
type forward struct {
	*Graph
	name    string
	budget  int
	seen    map[string]bool
	todo    []string
	upTo    map[*line]int64 // all tickets of the line before this place have been seen
	reaches bool
}

// reachesItself reports whether an owner may wait for itself, through any edges. done is false if the search used up
// its budget of edges.
func (g *Graph) reachesItself(name string, budget int) (reaches, done bool) {
	f := &forward{g, name, budget, map[string]bool{name: true}, []string{name}, map[*line]int64{}, false}
	for len(f.todo) > 0 && !f.over() {
		next := g.owners[f.todo[len(f.todo)-1]]
		f.todo = f.todo[:len(f.todo)-1]
		for t := range next.waiting {
			if !t.Doomed {
				f.ahead(t)
			}
		}
	}
	return f.reaches, f.reaches || f.budget > 0
}

func (f *forward) over() bool { return f.reaches || f.budget <= 0 }

func (f *forward) visit(from, to string) {
	f.budget--
	f.reaches = f.reaches || to == f.name && from != f.name
	if !f.seen[to] {
		f.seen[to] = true
		f.todo = append(f.todo, to)
	}
}

// ahead visits the owners that a ticket waits for.
func (f *forward) ahead(t *Ticket) {
	for c := range f.claims.against(t.Want) {
		if f.visit(t.Owner, c.Owner); f.over() {
			return
		}
	}
	for l := range f.lines.against(t.Want) {
		end := l.before(t.Place)
		for _, ahead := range l.list[min(l.before(f.upTo[l]), end):end] {
			if !ahead.Doomed {
				f.visit(t.Owner, ahead.Owner)
			}
			if f.over() {
				return
			}
		}
		if t.Owner != f.name { // the search passed over the first owner's own tickets
			f.upTo[l] = max(f.upTo[l], t.Place)
		}
	}
}
