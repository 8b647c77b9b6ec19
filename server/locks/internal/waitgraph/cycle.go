package waitgraph

import "math"

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
			if !t.Doomed && g.blocked(t, func(c *Claim) bool { return stuck[c.Owner] }) {
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

// blocked reports whether a ticket can never go ahead unless one of the counted leases is released.
func (g *Graph) blocked(t *Ticket, counts func(*Claim) bool) bool {
	taken := map[int]bool{}
	for c := range g.claims.against(t.Want) {
		if c.Owner == t.Owner || !counts(c) {
			continue
		}
		if !mate(t.Want, c) {
			return true
		}
		taken[c.Slot] = true
	}
	return t.Slots > 1 && len(taken) >= t.Slots
}

// blockedInLine reports whether an owner that counts is ahead of a ticket.
func (g *Graph) blockedInLine(t *Ticket, counts func(owner string) bool) bool {
	for l := range g.lines.against(t.Want) {
		for _, ahead := range l.list[:l.before(t.Place)] {
			if !ahead.Doomed && ahead.Owner != t.Owner && counts(ahead.Owner) {
				return true
			}
		}
	}
	return false
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
		waiters, _, done := g.dependents(name, search{line: true, own: true, budget: budget})
		if done {
			delete(waiters, name)
			if !g.waitsForOne(name, waiters) {
				return nil
			}
			return waiters
		}
	}
}

// waitsForOne reports whether an owner waits for any owner in a set.
func (g *Graph) waitsForOne(name string, set map[string]bool) bool {
	if len(set) == 0 {
		return false
	}
	for t := range g.owners[name].waiting {
		if t.Doomed {
			continue
		}
		for c := range g.claims.against(t.Want) {
			if set[c.Owner] {
				return true
			}
		}
		for l := range g.lines.against(t.Want) {
			for _, ahead := range l.list[:l.before(t.Place)] {
				if set[ahead.Owner] {
					return true
				}
			}
		}
	}
	return false
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
	set, either, _ := g.dependents(name, s)
	if either {
		g.reduce(name, set, s)
	}
	delete(set, name)
	return set
}

// reduce removes from a set the owners that do not really wait for an owner: some wait for one of several slots and
// will get one. The set begins with all owners that may wait.
func (g *Graph) reduce(name string, set map[string]bool, s search) {
	counts := func(c *Claim) bool { return set[c.Owner] && !s.direct[c] }
	others := func(o string) bool { return o != name && set[o] }
	for changed := true; changed; {
		changed = false
		for member := range set {
			stuck := member == name
			for t := range g.owners[member].waiting {
				stuck = stuck || !t.Doomed && (g.blocked(t, counts) || s.line && g.blockedInLine(t, others))
			}
			if !stuck {
				delete(set, member)
				changed = true
			}
		}
	}
}

// backward is a search for the owners that wait for an owner.
type backward struct {
	*Graph
	search
	set    map[string]bool
	todo   []string
	from   map[*line]int64 // all tickets of the line after this place are in the set
	either bool
}

// dependents returns an owner and all owners that may wait for it. either reports that some of them wait for one of
// several slots, of which another may become free. done is false if the search used up its budget of edges.
func (g *Graph) dependents(name string, s search) (set map[string]bool, either, done bool) {
	b := &backward{g, s, map[string]bool{name: true}, nil, map[*line]int64{}, false}
	first := g.owners[name]
	if first == nil {
		return b.set, false, true
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
	return b.set, b.either, b.budget > 0
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
	for l := range b.lines.against(w) {
		first, end := l.before(place+1), len(l.list)
		if scanned, ok := b.from[l]; ok {
			end = max(first, l.before(scanned+1))
		}
		for _, t := range l.list[first:end] {
			if b.budget--; b.budget <= 0 {
				return
			}
			if t.Doomed || t.Owner == w.Owner {
				continue
			}
			b.either = b.either || place < 0 && w.Slots > 1 && t.Slots > 1
			if !b.set[t.Owner] {
				b.set[t.Owner] = true
				b.todo = append(b.todo, t.Owner)
			}
		}
		if scanned, ok := b.from[l]; !ok || place < scanned {
			b.from[l] = place
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
