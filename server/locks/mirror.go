package locks

import (
	"container/heap"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/server/kv"
)

// mirror is what this server has seen of the table, at one revision of the store. It decides nothing that a transaction
// has not confirmed; it says who waits for whom, and whose time is up.
type mirror struct {
	mu       sync.Mutex
	revision int64 // of the store
	root     *place
	held     map[string]*held             // by the lease's own name
	beats    map[string]beat              // by key
	tickets  map[string]*ticket           // by the lease's own name
	parties  map[string]*party            // by holder
	due      dueQueue                     // of held
	gone     map[string]map[bell]struct{} // who wants to know that a key is deleted, or that a ticket came
	earlier  bell                         // rings when the earliest deadline may have changed
	own      promises
	// announced is the deadline that the sweeper knows of.
	announced time.Time
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
}

type beat struct {
	revision          int64
	expires, observed time.Time
	live              bool      // seen as it came, not found at the start
	promised          time.Time // by this server; zero where it was another
}

// party is what one holder has.
type party struct {
	held    map[string]*held
	tickets map[string]*ticket
}

func newMirror() *mirror {
	m := &mirror{gone: map[string]map[bell]struct{}{}, earlier: make(bell, 1), own: promises{until: map[string]promise{}}}
	m.clear()
	return m
}

func (m *mirror) clear() {
	m.root = newPlace()
	m.held, m.tickets = map[string]*held{}, map[string]*ticket{}
	m.beats, m.parties = map[string]beat{}, map[string]*party{}
	m.due = nil
}

// load replaces everything by what was read, as at the start.
func (m *mirror) load(entries []kv.Entry, revision int64, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clear()
	m.revision = revision
	for _, e := range entries {
		m.set(e, now, false)
	}
	for key := range m.gone {
		m.wake(key)
	}
	m.tell()
}

// apply follows the store.
func (m *mirror) apply(changes []kv.Change, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range changes {
		if c.Deleted {
			m.unset(c.Key)
		} else {
			m.set(c.Entry, now, true)
		}
		m.revision = c.Modified
	}
	m.tell()
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
			if h := m.root.at(e.Key, beatPrefix)[claimOf(e.Key)]; h != nil && h.beatKey() == e.Key {
				m.renewed(h, b)
			}
		}
	case strings.HasPrefix(e.Key, claimPrefix):
		if c, ok := decodeClaim(e); ok {
			m.hold(e, c)
		}
	case strings.HasPrefix(e.Key, waitPrefix):
		if read, ok := decodeTicket(e); ok {
			t := m.tickets[read.Lease]
			if t == nil {
				t = &ticket{}
				m.tickets[read.Lease] = t
				m.party(read.Holder).tickets[read.Lease] = t
			}
			*t = read // the same, or a later visit
			m.root.reach(e.Key, waitPrefix).tickets[e.Key] = t
			m.wake(e.Key)
		}
	}
}

func (m *mirror) hold(e kv.Entry, c claim) {
	h := m.held[c.Lease]
	if h == nil {
		h = &held{claim: c, token: e.Created, index: -1}
		m.held[c.Lease] = h
		m.party(c.Holder).held[c.Lease] = h
		if b, ok := m.beats[c.beatKey()]; ok {
			m.renewed(h, b)
		}
	}
	m.root.reach(e.Key, claimPrefix).claims[e.Key] = h
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
		if h := m.root.at(key, claimPrefix)[key]; h != nil {
			m.drop(h)
		}
		m.root.remove(key, claimPrefix)
	case strings.HasPrefix(key, waitPrefix):
		if t := m.root.find(key, waitPrefix).tickets[key]; t != nil {
			delete(m.tickets, t.Lease)
			p := m.party(t.Holder)
			delete(p.tickets, t.Lease)
			m.leave(t.Holder, p)
		}
		m.root.remove(key, waitPrefix)
	}
	m.wake(key)
}

func (m *mirror) drop(h *held) {
	delete(m.held, h.Lease)
	p := m.party(h.Holder)
	delete(p.held, h.Lease)
	m.leave(h.Holder, p)
	if h.index >= 0 {
		heap.Remove(&m.due, h.index)
	}
}

func (m *mirror) party(holder string) *party {
	p := m.parties[holder]
	if p == nil {
		p = &party{map[string]*held{}, map[string]*ticket{}}
		m.parties[holder] = p
	}
	return p
}

// granted returns the lease that a ticket's acquisition has got already.
func (m *mirror) granted(own *ticket) *held {
	if p := m.parties[own.Holder]; p != nil && own.named() {
		for _, h := range p.held {
			if own.got(h.claim) {
				return h
			}
		}
	}
	return nil
}

func (m *mirror) leave(holder string, p *party) {
	if len(p.held)+len(p.tickets) == 0 {
		delete(m.parties, holder)
	}
}

// bell rings when something happened that its owner waits for; it does not count.
type bell chan struct{}

func (b bell) ring() {
	select {
	case b <- struct{}{}:
	default:
	}
}

func (m *mirror) wake(key string) {
	for b := range m.gone[key] {
		b.ring()
	}
	delete(m.gone, key)
}

// await rings the bell when the key is deleted, or when it comes if it is a ticket that is not there yet.
func (m *mirror) await(key string, b bell) {
	if m.gone[key] == nil {
		m.gone[key] = map[bell]struct{}{}
	}
	m.gone[key][b] = struct{}{}
}

// forget takes await back.
func (m *mirror) forget(key string, b bell) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.gone[key], b)
	if len(m.gone[key]) == 0 {
		delete(m.gone, key)
	}
}
