package rooms

import (
	"container/heap"
	"context"
	"errors"
	"iter"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/wait"
	"github.com/holdfast-dev/holdfast/server/kv"
)

// presence holds what this instance knows of the sockets, participants, rooms and signs of life in the store. Watches
// keep it up to date. The sweeper therefore finds entries that changed or are due, and never scans entries at rest.
//
// The watches may lag, and one may be behind another. The sweeper confirms each of its actions in a transaction.
type presence struct {
	own       string // this instance
	clock     func() time.Time
	connected func(token string) bool

	mu      sync.Mutex
	read    map[string]bool // the prefixes whose keys have been read
	peers   map[string]*peer
	sockets map[string]*peer // by token
	members map[string]struct{}
	// orphans maps each participant without a socket to the time since when. strays are the tokens that are
	// registered here and may have no socket here.
	orphans map[string]time.Time
	strays  map[string]struct{}
	idle    idleQueue
	updates map[string]*lastUpdate // by room
	looked  int                    // the number of entries that the sweeper has looked at; a test bounds it
}

// peer is an instance, possibly this one.
type peer struct {
	id      string
	sign    int64            // the revision of its sign of life, 0 without one
	sockets map[string]int64 // the revision of each registration, by token
	// since is the time of the sign's last change, or of a later registration of a socket, measured on this machine. The clocks of two
	// machines are never compared.
	since time.Time
}

func newPresence(own string, connected func(token string) bool) *presence {
	return &presence{
		own: own, clock: time.Now, connected: connected, read: map[string]bool{},
		peers: map[string]*peer{}, sockets: map[string]*peer{}, members: map[string]struct{}{},
		orphans: map[string]time.Time{}, strays: map[string]struct{}{}, updates: map[string]*lastUpdate{},
	}
}

// kind is one kind of keys that presence follows. A name is the part of the key after the prefix.
type kind struct {
	prefix string
	put    func(name string, e kv.Entry, now time.Time)
	remove func(name string, now time.Time)
	names  func() iter.Seq[string]
}

func (p *presence) kinds() []kind {
	return []kind{
		{instancePrefix, p.signed, p.unsigned, func() iter.Seq[string] { return maps.Keys(p.peers) }},
		{socketPrefix, p.registered, p.unregistered, func() iter.Seq[string] { return maps.Keys(p.sockets) }},
		{memberPrefix, p.entered, p.left, func() iter.Seq[string] { return maps.Keys(p.members) }},
		{updatePrefix, p.updated, p.closed, func() iter.Seq[string] { return maps.Keys(p.updates) }},
	}
}

// presencePage is the number of entries per read. Tests change it.
var presencePage int64 = 10_000

// follow reads the keys of a kind and watches them until ctx ends.
func (p *presence) follow(ctx context.Context, store Store, k kind, log func(error)) {
	revision, read := int64(0), false
	for ctx.Err() == nil {
		var err error
		if !read {
			revision, err = p.readAll(ctx, store, k)
			read = err == nil
		}
		if read {
			err = store.Watch(ctx, k.prefix, revision, func(changes []kv.Change) error {
				p.apply(k, changes, time.Now())
				revision = changes[len(changes)-1].Modified
				return nil
			})
			read = !errors.Is(err, kv.ErrCompacted)
		}
		if ctx.Err() == nil {
			log(err)
			_ = wait.For(ctx, resumeAfter)
		}
	}
}

// readAll replaces all known entries of a kind and returns the revision of the read.
func (p *presence) readAll(ctx context.Context, store Store, k kind) (int64, error) {
	found := map[string]kv.Entry{}
	revision, err := store.Each(ctx, k.prefix, presencePage, func(entries []kv.Entry) error {
		for _, e := range entries {
			found[strings.TrimPrefix(e.Key, k.prefix)] = e
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	for name := range k.names() {
		if _, ok := found[name]; !ok {
			k.remove(name, now)
		}
	}
	for name, e := range found {
		k.put(name, e, now)
	}
	p.read[k.prefix] = true
	return revision, nil
}

func (p *presence) apply(k kind, changes []kv.Change, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range changes {
		name := strings.TrimPrefix(c.Key, k.prefix)
		if c.Deleted {
			k.remove(name, now)
		} else {
			k.put(name, c.Entry, now)
		}
	}
}

// peer returns an instance and creates it if needed. The caller holds p.mu.
func (p *presence) peer(id string, now time.Time) *peer {
	i := p.peers[id]
	if i == nil {
		i = &peer{id: id, sockets: map[string]int64{}, since: now}
		p.peers[id] = i
	}
	return i
}

// tidy removes an instance that has neither a sign of life nor sockets. The caller holds p.mu.
func (p *presence) tidy(i *peer) {
	if i.sign == 0 && len(i.sockets) == 0 {
		delete(p.peers, i.id)
	}
}

func (p *presence) signed(id string, e kv.Entry, now time.Time) {
	i := p.peer(id, now)
	if i.sign != e.Modified {
		i.sign, i.since = e.Modified, now
	}
}

func (p *presence) unsigned(id string, now time.Time) {
	i := p.peer(id, now)
	if i.sign != 0 {
		i.sign, i.since = 0, now
	}
	p.tidy(i)
}

func (p *presence) registered(token string, e kv.Entry, now time.Time) {
	i := p.peer(string(e.Value), now)
	if former := p.sockets[token]; former != nil && former != i {
		delete(former.sockets, token)
		p.tidy(former)
	}
	if i.sockets[token] != e.Modified {
		i.since = now // an instance that registers a socket lives
	}
	p.sockets[token], i.sockets[token] = i, e.Modified
	delete(p.orphans, token)
	if i.id == p.own && !p.connected(token) {
		p.strays[token] = struct{}{}
	}
}

func (p *presence) unregistered(token string, now time.Time) {
	if i := p.sockets[token]; i != nil {
		delete(i.sockets, token)
		p.tidy(i)
	}
	delete(p.sockets, token)
	delete(p.strays, token)
	p.orphan(token, now)
}

func (p *presence) entered(token string, _ kv.Entry, now time.Time) {
	p.members[token] = struct{}{}
	p.orphan(token, now)
}

func (p *presence) left(token string, _ time.Time) {
	delete(p.members, token)
	delete(p.orphans, token)
}

// orphan records the time since when a participant has no socket. The caller holds p.mu.
func (p *presence) orphan(token string, since time.Time) {
	_, member := p.members[token]
	_, known := p.orphans[token]
	if member && !known && p.sockets[token] == nil {
		p.orphans[token] = since
	}
}

// updated records a change of a room, by this machine's clock. A room that is read at the start counts as changed then: another
// clock has measured its stored time.
func (p *presence) updated(room string, e kv.Entry, _ time.Time) {
	at := p.clock()
	if _, err := decodeTime(e.Value); err != nil {
		at = time.Time{} // the time cannot be read; the room counts as idle
	}
	u := p.updates[room]
	if u != nil && u.revision == e.Modified {
		return // it is only read again
	}
	if u == nil {
		u = &lastUpdate{room: room, at: at, revision: e.Modified}
		p.updates[room] = u
		heap.Push(&p.idle, u)
		return
	}
	u.at, u.revision = at, e.Modified
	heap.Fix(&p.idle, u.index)
}

func (p *presence) closed(room string, _ time.Time) {
	if u := p.updates[room]; u != nil {
		heap.Remove(&p.idle, u.index)
		delete(p.updates, room)
	}
}

// stray records that a token may be registered here without a socket.
func (p *presence) stray(token string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.strays[token] = struct{}{}
}
