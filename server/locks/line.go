package locks

// obstacle is a claim or a ticket in the way of a request.
type obstacle struct {
	key    string // its deletion may clear the way
	held   *held
	ticket *ticket
}

// obstacles returns what is in the way of a request that came at place, claims before tickets. Of an exclusive request
// with slots it also returns the lowest free one. The caller holds the lock.
func (m *mirror) obstacles(c claim, at int64) (list []obstacle, slot int) {
	var ahead []obstacle
	taken := map[int]bool{}
	var slots []obstacle
	look := func(p *place, counts func(claim) bool) {
		for key, h := range p.claims {
			if h.Lease != c.Lease && counts(h.claim) {
				list = append(list, obstacle{key: key, held: h})
			}
		}
		for key, t := range p.tickets {
			if t.Place < at && t.Lease != c.Lease && counts(t.claim) {
				ahead = append(ahead, obstacle{key: key, ticket: t})
			}
		}
	}
	exclusive := func(other claim) bool { return other.Mode == Exclusive }
	for _, path := range c.Paths {
		m.root.visit(path,
			func(p *place) { look(p, exclusive) },
			func(p *place) {
				if c.Slots <= 1 {
					look(p, func(other claim) bool { return c.Mode == Exclusive || exclusive(other) })
					return
				}
				before := len(list)
				look(p, func(claim) bool { return true })
				kept := list[:before:before]
				for _, o := range list[before:] {
					if o.held.Slots > 1 {
						taken[o.held.Slot] = true
						slots = append(slots, o)
					} else {
						kept = append(kept, o)
					}
				}
				list = kept
			},
			func(p *place) {
				if c.Mode == Exclusive {
					look(p, func(claim) bool { return true })
				}
			})
	}
	for taken[slot] {
		slot++
	}
	if slot >= c.Slots {
		list, slot = append(list, slots...), 0
	}
	return append(list, ahead...), slot
}

// blockers are the obstacles of a ticket, but for those ahead in line that wait for its own holder: it may overtake
// them, since both would wait forever otherwise.
func (m *mirror) blockers(t *ticket) (list []obstacle, slot int) {
	list, slot = m.obstacles(t.claim, t.Place)
	if !m.holds(t.Holder) {
		return list, slot
	}
	direct := map[*held]bool{}
	for _, o := range list {
		if o.held != nil {
			direct[o.held] = true
		}
	}
	kept := list[:0]
	for _, o := range list {
		if o.ticket != nil && o.ticket.Holder != t.Holder && m.waitsFor(o.ticket, t.Holder, func(h *held) bool { return !direct[h] }, 0) {
			continue
		}
		kept = append(kept, o)
	}
	return kept, slot
}

func (m *mirror) holds(holder string) bool {
	p := m.parties[holder]
	return p != nil && len(p.held) > 0
}

// deadlocked reports whether a request closes a circle as its youngest member: of all that wait in a circle exactly one
// is, so exactly one gives up. Waiting is told by holder: whoever waits for a holder waits for all that this holder
// waits for. Two requests of one holder do not wait for each other in this sense.
func (m *mirror) deadlocked(t *ticket, blockers []obstacle) bool {
	if !m.holds(t.Holder) {
		return false
	}
	any := func(*held) bool { return true }
	for _, o := range blockers {
		if m.leadsTo(o, t.Holder, t.Holder, any, t.Place, map[*ticket]bool{}) {
			return true
		}
	}
	return false
}

// waitsFor reports whether a request waits, directly or through others, for a lease of the holder that counts. With a
// limit, only requests that came before it are looked at.
func (m *mirror) waitsFor(t *ticket, holder string, counts func(*held) bool, limit int64) bool {
	return m.search(t, holder, counts, limit, map[*ticket]bool{})
}

func (m *mirror) search(t *ticket, holder string, counts func(*held) bool, limit int64, seen map[*ticket]bool) bool {
	if seen[t] || limit > 0 && t.Place >= limit {
		return false
	}
	seen[t] = true
	list, _ := m.obstacles(t.claim, t.Place)
	for _, o := range list {
		if m.leadsTo(o, t.Holder, holder, counts, limit, seen) {
			return true
		}
	}
	return false
}

// leadsTo reports whether an obstacle in from's way is a lease of the holder, or waits for one.
func (m *mirror) leadsTo(o obstacle, from, holder string, counts func(*held) bool, limit int64, seen map[*ticket]bool) bool {
	var owner string
	if o.held != nil {
		if o.held.Holder == holder && from != holder && counts(o.held) {
			return true
		}
		owner = o.held.Holder
	} else {
		owner = o.ticket.Holder
	}
	if owner == from || owner == holder {
		return false
	}
	for _, next := range m.parties[owner].tickets {
		if m.search(next, holder, counts, limit, seen) {
			return true
		}
	}
	return false
}
