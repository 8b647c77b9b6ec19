package locks

import (
	"container/heap"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/locks/internal/waitgraph"
)

// mirror is what this server has seen of the table, at one revision of the store. It decides nothing that a transaction
// has not confirmed; it says who waits for whom, and whose time is up.
type mirror struct {
	mu       sync.Mutex
	revision int64 // of the store
	graph    *waitgraph.Graph
	held     map[string]*held   // by the lease's own name
	order    byToken            // of held
	homes    map[string]*held   // by the key of the first claim
	asked    map[string]*held   // by holder and ticket
	granted  map[string]stand   // by the key of the first claim: this server has granted them, and its watch has not shown them yet
	beats    map[string]beat    // by key
	tickets  map[string]*ticket // by the lease's own name
	kept     map[string]int     // how many tickets of each holder the store remembers: places in line, and acquisitions that ended
	touched  []string           // the holders that got a new edge in the present revision
	due      dueQueue           // of held
	rings    rings
	earlier  bell // rings when the earliest deadline may have changed
	own      *promises
	// announced is the deadline that the sweeper knows of.
	announced time.Time
	looks     int // of waiters, since the start; a test bounds them
}

// held is a lease as this server sees it.
type held struct {
	claim
	token int64
	// deadline is on this machine's monotonic clock, if it was running when the heartbeat came.
	deadline time.Time
	expires  time.Time // what the store says
	beatAt   int64     // the revision of the last heartbeat
	index    int       // in the queue; -1 outside of it
	gone     bool      // from the mirror
}

type beat struct {
	revision          int64
	expires, observed time.Time
	live              bool      // seen as it came, not found at the start
	promised          time.Time // by this server; zero where it was another
}

func newMirror() *mirror {
	m := &mirror{rings: newRings(), earlier: make(bell, 1), own: &promises{until: map[string]promise{}}}
	m.clear()
	return m
}

func (m *mirror) clear() {
	m.graph = waitgraph.New()
	m.held, m.homes, m.asked, m.granted = map[string]*held{}, map[string]*held{}, map[string]*held{}, map[string]stand{}
	m.beats, m.tickets, m.kept = map[string]beat{}, map[string]*ticket{}, map[string]int{}
	m.touched, m.due, m.order = nil, nil, byToken{}
}

// loading is a mirror that is being filled with what is in the store.
type loading struct {
	*mirror
	waiting []kv.Entry
}

// load begins to read everything anew. The mirror goes on meanwhile.
func (m *mirror) load() *loading {
	fresh := &mirror{rings: newRings(), earlier: make(bell, 1), own: m.own}
	fresh.clear()
	fresh.order.loading = true
	return &loading{mirror: fresh}
}

// add adds entries at the revision that is read.
func (l *loading) add(entries []kv.Entry, now time.Time) {
	for _, e := range entries {
		if strings.HasPrefix(e.Key, waitPrefix) {
			l.waiting = append(l.waiting, e)
		} else {
			l.set(e, now, false)
		}
	}
	l.touched = l.touched[:0] // without tickets there is no cycle
}

// take replaces everything by what was read. The tickets come in the order in which they joined, so that the same ones close
// deadlocks as everywhere else.
func (m *mirror) take(l *loading, revision int64, now time.Time) {
	l.order.loaded()
	slices.SortStableFunc(l.waiting, func(a, b kv.Entry) int { return int(a.Modified - b.Modified) })
	for _, e := range l.waiting {
		l.set(e, now, false)
		l.check()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.revision, m.graph, m.order, m.due = revision, l.graph, l.order, l.due
	m.held, m.homes, m.asked, m.beats, m.tickets, m.kept = l.held, l.homes, l.asked, l.beats, l.tickets, l.kept
	maps.DeleteFunc(m.granted, func(_ string, s stand) bool { return s.token <= revision })
	m.rings.ringAll()
	m.tell()
}

// apply follows the store.
func (m *mirror) apply(changes []kv.Change, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, c := range changes {
		if c.Deleted {
			m.unset(c.Key)
		} else {
			m.set(c.Entry, now, true)
		}
		m.revision = c.Modified
		if i+1 == len(changes) || changes[i+1].Modified != c.Modified {
			m.check() // one transaction is one step
		}
	}
	m.rings.reached(m.revision)
	m.tell()
}

// check looks for cycles through those who got a new edge.
func (m *mirror) check() {
	for _, holder := range m.touched {
		effects := m.graph.Check(holder)
		for _, t := range append(effects.Doomed, effects.Look...) {
			m.rings.ring(ticketEvent(t.ID))
		}
	}
	m.touched = m.touched[:0]
}

// tell rings for whoever waits for the earliest deadline, if that is earlier now.
func (m *mirror) tell() {
	if len(m.due) > 0 && (m.announced.IsZero() || m.due[0].deadline.Before(m.announced)) {
		m.earlier.ring()
	}
}

func (m *mirror) set(e kv.Entry, now time.Time, live bool) {
	switch {
	case strings.HasPrefix(e.Key, beatPrefix):
		if expires, ok := decodeBeat(e); ok {
			b := beat{revision: e.Modified, expires: expires, observed: now, live: live}
			b.promised, _ = m.own.of(e.Key, expires)
			m.beats[e.Key] = b
			if h := m.homes[claimOf(e.Key)]; h != nil {
				m.renewed(h, b)
			}
		}
	case strings.HasPrefix(e.Key, claimPrefix):
		if c, ok := decodeClaim(e); ok && m.held[c.Lease] == nil {
			m.hold(e, c)
		}
	case strings.HasPrefix(e.Key, waitPrefix):
		read, ok := decodeTicket(e)
		if !ok {
			return
		}
		if t := m.tickets[read.Lease]; t != nil && t.joined == read.joined {
			return // its next path
		}
		m.tickets[read.Lease] = &read
		m.graph.Join(&waitgraph.Ticket{Want: read.want(), Place: read.Place})
		m.touched = append(m.touched, read.Holder)
		m.rings.ring(ticketEvent(read.Lease))
	case !live || e.Created == e.Modified:
		m.keep(e.Key, 1)
	}
}

// keep counts the keys of a ticket that the store remembers. Other keys are not counted.
func (m *mirror) keep(key string, n int) {
	name, ok := strings.CutPrefix(key, stubPrefix)
	if !ok {
		if name, ok = strings.CutPrefix(key, gonePrefix); !ok {
			return
		}
	}
	holder := name[:max(strings.LastIndexByte(name, '/'), 0)]
	if m.kept[holder] += n; m.kept[holder] <= 0 {
		delete(m.kept, holder)
	}
}

func (m *mirror) hold(e kv.Entry, c claim) {
	h := &held{claim: c, token: e.Created, index: -1}
	home := c.keys()[0]
	m.held[c.Lease], m.homes[home] = h, h
	if m.granted[home].token <= h.token {
		delete(m.granted, home)
	}
	if c.Ticket != "" {
		m.asked[askedKey(c)] = h
	}
	m.order.add(h)
	m.graph.Hold(&waitgraph.Claim{Want: c.want(), Slot: c.Slot})
	m.touched = append(m.touched, c.Holder)
	if b, ok := m.beats[beatOf(home)]; ok {
		m.renewed(h, b)
	}
}

// renewed sets the deadline. A heartbeat of this server's own counts from when it took it, and one that came while it
// watched from then, by the monotonic clock: no wall clock, set wrong or stepping, can end a lease too early. One that was
// found at the start has only its time.
func (m *mirror) renewed(h *held, b beat) {
	h.expires, h.beatAt = b.expires, b.revision
	left := h.ttl()
	if !b.live {
		left = min(max(b.expires.Sub(b.observed), 0), h.ttl())
	}
	h.deadline = b.observed.Add(left)
	if !b.promised.IsZero() {
		h.deadline = b.promised
	}
	if h.index < 0 {
		heap.Push(&m.due, h)
	} else {
		heap.Fix(&m.due, h.index)
	}
}

func (m *mirror) unset(key string) {
	switch {
	case strings.HasPrefix(key, beatPrefix):
		delete(m.beats, key)
		m.own.drop(key)
	case strings.HasPrefix(key, claimPrefix):
		if h := m.homes[key]; h != nil {
			m.drop(key, h)
		}
	case strings.HasPrefix(key, waitPrefix):
		lease := leaseOf(key)
		if m.tickets[lease] != nil {
			delete(m.tickets, lease)
			m.graph.Leave(lease)
		}
		m.rings.ring(ticketEvent(lease))
	default:
		m.keep(key, -1)
	}
}

func (m *mirror) drop(home string, h *held) {
	delete(m.held, h.Lease)
	delete(m.homes, home)
	if m.asked[askedKey(h.claim)] == h {
		delete(m.asked, askedKey(h.claim))
	}
	m.order.remove(h)
	m.graph.Release(h.Lease)
	if h.index >= 0 {
		heap.Remove(&m.due, h.index)
	}
	m.rings.ring(claimEvent(h.Lease))
}

// note notes what this server has granted: the holder may come back before the watch shows it.
func (m *mirror) note(c claim, token int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.revision < token {
		home := c.keys()[0]
		m.granted[home] = stand{c, home, token}
	}
}

// unnote forgets a grant that has ended.
func (m *mirror) unnote(home string, token int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.granted[home].token == token {
		delete(m.granted, home)
	}
}

// at returns the lease whose first claim has a key, as far as this server knows, if it is the holder's.
func (m *mirror) at(home, holder string) (stand, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.granted[home]
	if h := m.homes[home]; h != nil && h.token > s.token {
		s, ok = h.stand(), true
	}
	return s, ok && s.Holder == holder
}

// got returns the lease that a ticket's acquisition has got already.
func (m *mirror) got(own *ticket) *held {
	if h := m.asked[askedKey(own.claim)]; own.named() && h != nil && own.got(h.claim) {
		return h
	}
	return nil
}

func askedKey(c claim) string { return c.Holder + "/" + c.Ticket }

// inTheWay returns the leases in the way of a claim, the first that are found, and reports whether others wait for the same.
func (m *mirror) inTheWay(c claim) (list []stand, waited bool) {
	w := c.want()
	m.graph.Holders(w, func(other *waitgraph.Claim) bool {
		list = append(list, m.held[other.ID].stand())
		return len(list) < maxNamed
	})
	return list, m.graph.Wanted(w)
}

// want is a claim as the graph knows it.
func (c claim) want() waitgraph.Want {
	w := waitgraph.Want{ID: c.Lease, Owner: c.Holder, Shared: c.Mode == Shared, Slots: c.Slots}
	for _, p := range c.Paths {
		w.Paths = append(w.Paths, p)
	}
	return w
}
