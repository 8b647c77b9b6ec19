package waitgraph

import (
	"iter"
	"sort"
)

// claimNode is a place with its leases. Places without leases, on them or below, are removed.
type claimNode struct {
	below         map[string]*claimNode
	whole, shared map[*Claim]struct{}
}

func (n *claimNode) reach(path []string) *claimNode {
	for _, component := range path {
		next := n.below[component]
		if next == nil {
			next = &claimNode{}
			if n.below == nil {
				n.below = map[string]*claimNode{}
			}
			n.below[component] = next
		}
		n = next
	}
	return n
}

func (n *claimNode) add(c *Claim) {
	set := &n.whole
	if c.Shared {
		set = &n.shared
	}
	if *set == nil {
		*set = map[*Claim]struct{}{}
	}
	(*set)[c] = struct{}{}
}

// remove removes a lease from a place, and reports whether the place and everything below it are empty.
func (n *claimNode) remove(path []string, c *Claim) (empty bool) {
	if len(path) > 0 {
		next := n.below[path[0]]
		if next != nil && next.remove(path[1:], c) {
			delete(n.below, path[0])
		}
	} else {
		delete(n.whole, c)
		delete(n.shared, c)
	}
	return len(n.below)+len(n.whole)+len(n.shared) == 0
}

// against yields the leases that conflict with a want, and whether the lease is on the same path. A lease with several paths may come several
// times.
func (n *claimNode) against(w Want) iter.Seq2[*Claim, bool] {
	return func(yield func(*Claim, bool) bool) {
		each := func(same bool) func(map[*Claim]struct{}) bool {
			return func(set map[*Claim]struct{}) bool {
				for c := range set {
					if c.ID != w.ID && !yield(c, same) {
						return false
					}
				}
				return true
			}
		}
		same, other := each(true), each(false)
		for _, path := range w.Paths {
			at := n
			for _, component := range path {
				if at != n && !other(at.whole) {
					return
				}
				if at = at.below[component]; at == nil {
					break
				}
			}
			if at == nil {
				continue
			}
			if !same(at.whole) || !w.Shared && (!same(at.shared) || !at.eachBelow(other)) {
				return
			}
		}
	}
}

func (n *claimNode) eachBelow(each func(map[*Claim]struct{}) bool) bool {
	for _, next := range n.below {
		if !each(next.whole) || !each(next.shared) || !next.eachBelow(each) {
			return false
		}
	}
	return true
}

// lineNode is a place with the lines of its waiters.
type lineNode struct {
	below map[string]*lineNode
	// whole and shared are the tickets for this exact place, under those for a place below it.
	whole, shared, under line
}

func (n *lineNode) add(path []string, t *Ticket) {
	for _, component := range path {
		n.under.add(t)
		next := n.below[component]
		if next == nil {
			next = &lineNode{}
			if n.below == nil {
				n.below = map[string]*lineNode{}
			}
			n.below[component] = next
		}
		n = next
	}
	n.own(t).add(t)
}

func (n *lineNode) own(t *Ticket) *line {
	if t.Shared {
		return &n.shared
	}
	return &n.whole
}

func (n *lineNode) remove(path []string, t *Ticket) (empty bool) {
	if len(path) > 0 {
		n.under.remove(t)
		next := n.below[path[0]]
		if next != nil && next.remove(path[1:], t) {
			delete(n.below, path[0])
		}
	} else {
		n.own(t).remove(t)
	}
	return len(n.below)+len(n.whole.list)+len(n.shared.list) == 0
}

// against yields the lines whose tickets all conflict with a want.
func (n *lineNode) against(w Want) iter.Seq[*line] {
	return func(yield func(*line) bool) {
		for _, path := range w.Paths {
			at := n
			for _, component := range path {
				if at != n && !yield(&at.whole) {
					return
				}
				if at = at.below[component]; at == nil {
					break
				}
			}
			if at == nil {
				continue
			}
			if !yield(&at.whole) || !w.Shared && (!yield(&at.shared) || !yield(&at.under)) {
				return
			}
		}
	}
}

// line contains tickets in the order of their places, each once.
type line struct{ list []*Ticket }

// before returns the number of tickets before a place.
func (l *line) before(place int64) int {
	return sort.Search(len(l.list), func(i int) bool { return l.list[i].Place >= place })
}

// find returns the index of a ticket, or the index at which to insert it.
func (l *line) find(t *Ticket) (i int, found bool) {
	for i = l.before(t.Place); i < len(l.list) && l.list[i].Place == t.Place; i++ {
		if l.list[i] == t {
			return i, true
		}
	}
	return i, false
}

func (l *line) add(t *Ticket) {
	i, found := l.find(t)
	if found {
		return // it has several paths below this place
	}
	l.list = append(l.list, nil)
	copy(l.list[i+1:], l.list[i:])
	l.list[i] = t
}

func (l *line) remove(t *Ticket) {
	i, found := l.find(t)
	if !found {
		return
	}
	if i == 0 {
		l.list[0] = nil
		l.list = l.list[1:] // usually the first ticket leaves
		return
	}
	l.list = append(l.list[:i], l.list[i+1:]...)
}
