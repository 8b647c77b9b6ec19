package locks

import (
	"cmp"
	"container/heap"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/locks/internal/waitgraph"
)

// mirror is this server's view of the table at one revision of the store. It shows who waits for whom and which
// leases are due. A transaction confirms every decision that is based on it.
type mirror struct {
	mu        sync.Mutex
	revision  int64 // of the store
	graph     *waitgraph.Graph
	held      map[string]*held       // by the lease's own name
	order     byToken                // of held
	homes     map[string]*held       // by the key of the first claim
	asked     map[string][]*held     // by holder and ticket
	granted   map[string]storedLease // by the key of the first claim: this server's grants that its watch has not shown yet
	beats     map[string]beat        // by key
	tickets   map[string]*ticket     // by the lease's own name
	users     map[string]int         // the number of leases of each user
	kept      map[string]int         // the number of remembered tickets of each holder: places in the queue and ended acquisitions
	touched   []string               // the owners in the graph that got a new edge in the present revision
	due       dueQueue               // of held
	notifiers notifiers
	earlier   notifier // notified when the earliest deadline may have changed
	own       *promises
	visits    *visits
	shown     func(age time.Duration) // called when the watch shows a new lease, with the time since its grant
	// announced is the deadline that the sweeper knows.
	announced time.Time
	looks     int // of waiters, since the start; a test limits them
}

// held is a lease in this server's view.
type held struct {
	claim
	token int64
	// deadline uses this machine's monotonic clock if the watch was running when the heartbeat came.
	deadline time.Time
	expires  time.Time // the time in the store
	beatAt   int64     // the revision of the last heartbeat
	index    int       // in the queue; -1 outside of it
	gone     bool      // removed from the mirror
}

type beat struct {
	revision          int64
	expires, observed time.Time
	live              bool      // made while this server ran, not read at the start
	promised          time.Time // by this server; zero if another server extended the lease
}

func newMirror() *mirror {
	m := &mirror{notifiers: newNotifiers(), earlier: make(notifier, 1), own: &promises{made: map[string][]promise{}}, visits: newVisits(), shown: func(time.Duration) {}}
	m.clear()
	return m
}

func (m *mirror) clear() {
	m.graph = waitgraph.New()
	m.held, m.homes, m.asked, m.granted = map[string]*held{}, map[string]*held{}, map[string][]*held{}, map[string]storedLease{}
	m.beats, m.tickets, m.kept = map[string]beat{}, map[string]*ticket{}, map[string]int{}
	m.touched, m.due, m.order, m.users = nil, nil, byToken{}, map[string]int{}
}

// loading is a mirror that is being filled from the store.
type loading struct {
	*mirror
	waiting []kv.Entry
}

// load begins to read everything again. The mirror stays in use meanwhile.
func (m *mirror) load() *loading {
	fresh := &mirror{notifiers: newNotifiers(), earlier: make(notifier, 1), own: m.own, visits: m.visits}
	fresh.clear()
	fresh.order.loading = true
	return &loading{mirror: fresh}
}

// add adds entries of the revision that is read.
func (l *loading) add(entries []kv.Entry, now time.Time) {
	for _, e := range entries {
		if strings.HasPrefix(e.Key, waitPrefix) {
			l.waiting = append(l.waiting, e)
		} else {
			l.set(e, now, false)
		}
	}
}

// replay adds the leases and the tickets to the graph in the order of their revisions, so that the same tickets close
// deadlocks on every server.
func (l *loading) replay(now time.Time) {
	l.order.loaded()
	slices.SortStableFunc(l.waiting, func(a, b kv.Entry) int { return cmp.Compare(a.Modified, b.Modified) })
	leases, waiting := l.order.list, l.waiting
	for len(leases)+len(waiting) > 0 {
		next := int64(math.MaxInt64)
		if len(leases) > 0 {
			next = leases[0].token
		}
		if len(waiting) > 0 {
			next = min(next, waiting[0].Modified)
		}
		for ; len(leases) > 0 && leases[0].token == next; leases = leases[1:] {
			l.connect(leases[0])
		}
		for ; len(waiting) > 0 && waiting[0].Modified == next; waiting = waiting[1:] {
			l.set(waiting[0], now, false)
		}
		l.check()
	}
}

// prepare does what takes long in take. It needs no lock: requests go on meanwhile.
func (l *loading) prepare(former *mirror, now time.Time) {
	l.replay(now)
	l.observedBefore(former.beats, former.revision)
}

// take replaces the mirror's contents with what was read. The caller is the only one that changes the mirror's contents.
func (m *mirror) take(l *loading, revision int64, now time.Time) {
	l.prepare(m, now)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.revision, m.graph, m.order, m.due = revision, l.graph, l.order, l.due
	m.users = l.users
	m.held, m.homes, m.asked, m.beats, m.tickets, m.kept = l.held, l.homes, l.asked, l.beats, l.tickets, l.kept
	maps.DeleteFunc(m.granted, func(_ string, s storedLease) bool { return s.token <= revision })
	m.own.sweep(now) // the watch has not shown the end of some leases
	m.notifiers.happened()
	m.notifiers.reached(revision)
	m.tell()
}

// apply applies the store's changes.
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
	m.notifiers.reached(m.revision)
	m.tell()
}

// check looks for cycles through the owners with a new edge. Changes that share a revision have no order, so the names of
// the owners order them.
func (m *mirror) check() {
	slices.Sort(m.touched)
	for _, owner := range slices.Compact(m.touched) {
		effects := m.graph.Check(owner)
		for _, t := range append(effects.Doomed, effects.Look...) {
			m.notifiers.notify(ticketEvent(t.ID))
		}
	}
	m.touched = m.touched[:0]
}

// tell notifies the sweeper if the earliest deadline is now earlier.
func (m *mirror) tell() {
	if len(m.due) > 0 && (m.announced.IsZero() || m.due[0].deadline.Before(m.announced)) {
		m.earlier.notify()
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
			if live {
				m.shown(now.Sub(time.UnixMilli(c.Locked)))
			}
		}
	case strings.HasPrefix(e.Key, waitPrefix):
		read, ok := decodeTicket(e)
		if !ok {
			return
		}
		if t := m.tickets[read.Lease]; t != nil && t.joined == read.joined {
			return // the key of another path of the same ticket
		}
		m.visits.see(read, e)
		m.tickets[read.Lease] = &read
		m.graph.Join(&waitgraph.Ticket{Want: read.want(), Place: read.Place})
		m.touched = append(m.touched, read.owner())
		m.notifiers.notify(ticketEvent(read.Lease))
	case !live || e.Created == e.Modified:
		m.keep(e.Key, 1)
	}
}

// keep counts the ticket keys that the store remembers. It ignores other keys.
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

// count counts the leases of a user.
func (m *mirror) count(user string, n int) {
	if user == "" {
		return
	}
	if m.users[user] += n; m.users[user] <= 0 {
		delete(m.users, user)
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
		m.asked[askedKey(c)] = append(m.asked[askedKey(c)], h)
	}
	m.count(c.User, 1)
	m.order.add(h)
	if !m.order.loading {
		m.connect(h)
	}
	if b, ok := m.beats[beatOf(home)]; ok {
		m.renewed(h, b)
	}
}

// connect adds the edges of a lease: those of the requests that wait for it.
func (m *mirror) connect(h *held) {
	w := h.want()
	m.graph.Hold(&waitgraph.Claim{Want: w, Slot: h.Slot})
	if m.graph.Wanted(w) {
		m.touched = append(m.touched, h.owner())
	}
}

// renewed sets the deadline. For this server's own heartbeat the TTL counts from the time at which it was made. For a
// heartbeat from the watch it counts from its arrival. Both use the monotonic clock, so no wall clock that is wrong
// or stepped can end a lease too early. A heartbeat that was read at the start has only its stored time.
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
		m.notifiers.notify(ticketEvent(lease))
	default:
		m.keep(key, -1)
	}
}

func (m *mirror) drop(home string, h *held) {
	delete(m.held, h.Lease)
	delete(m.homes, home)
	m.unask(h)
	m.count(h.User, -1)
	m.order.remove(h)
	m.graph.Release(h.Lease)
	if h.index >= 0 {
		heap.Remove(&m.due, h.index)
	}
	m.own.drop(h.claim)
	m.notifiers.notify(claimEvent(h.Lease))
}

// note records a grant of this server. The holder may come back before the watch shows the grant.
func (m *mirror) note(c claim, token int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.revision < token {
		home := c.home()
		m.granted[home] = storedLease{c, home, token}
	}
}

// unnote removes the record of a grant that has ended.
func (m *mirror) unnote(home string, token int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.granted[home].token == token {
		delete(m.granted, home)
	}
}

// at returns the lease whose first claim has this key, as far as this server knows. ok is false if it belongs to
// another holder.
func (m *mirror) at(home, holder string) (storedLease, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.granted[home]
	if h := m.homes[home]; h != nil && h.token > s.token {
		s, ok = h.storedLease(), true
	}
	return s, ok && s.Holder == holder
}

// got returns the lease that a ticket's acquisition has already received.
func (m *mirror) got(own *ticket) *held {
	for _, h := range m.asked[askedKey(own.claim)] {
		if own.got(h.claim) {
			return h
		}
	}
	return nil
}

// unask removes a lease that has ended from those of its ticket.
func (m *mirror) unask(h *held) {
	key := askedKey(h.claim)
	rest := slices.DeleteFunc(m.asked[key], func(other *held) bool { return other == h })
	if len(rest) == 0 {
		delete(m.asked, key)
	} else {
		m.asked[key] = rest
	}
}

func askedKey(c claim) string { return c.Holder + "/" + c.Ticket }

// inTheWay returns the first leases that conflict with a claim, and reports whether other requests wait for the same
// place.
func (m *mirror) inTheWay(c claim) (list []storedLease, waited bool) {
	w := c.want()
	m.graph.Holders(w, func(other *waitgraph.Claim) bool {
		list = append(list, m.held[other.ID].storedLease())
		return len(list) < maxNamed
	})
	return list, m.graph.Wanted(w)
}

// want converts a claim for the graph.
func (c claim) want() waitgraph.Want {
	w := waitgraph.Want{ID: c.Lease, Owner: c.owner(), Group: c.Holder, Shared: c.Mode == Shared, Slots: c.Slots}
	for _, p := range c.Paths {
		w.Paths = append(w.Paths, p)
	}
	return w
}
