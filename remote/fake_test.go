package remote_test

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/remote"
)

// internet is a server that lives in memory and the way to it.
type internet struct {
	ttl time.Duration

	mu      sync.Mutex
	leases  []*leased
	token   int64
	changed chan struct{}
	broken  chan struct{} // closed when what waits for an answer is cut off
	down    bool
	silent  bool         // nothing is answered, until the request is given up
	circle  bool         // whoever has to wait is told that it waits in a circle
	refuse  remote.Reply // where Status is set, the answer to everything
	log     []string     // method and session of each request that arrived
	tickets []string     // of those for a lock that may wait
	content []byte
	written int64 // token of the content; 0 for none
	saved   time.Time
	save    remote.Save
	// What clients ask each other through the server.
	question  *inquiry
	notices   []remote.Notice
	listening int // connections
	// answer, where set, is called when a request was carried out, before the reply is on its way: an error is what the client gets
	// instead. The mutex is not held.
	answer func(remote.Request) error
	// delay, where set, is called before a request is carried out, whether or not the client still waits. The mutex is not held.
	delay func(remote.Request)
}

func newInternet() *internet {
	return &internet{ttl: 30 * time.Second, changed: make(chan struct{}), broken: make(chan struct{}), token: 100}
}

// leased is a lease of the server's.
type leased struct {
	session         string
	paths           [][]string
	mode            lock.Mode
	slots, slot     int
	token           int64
	locked, expires time.Time
}

func (l *leased) whole() bool { return l.mode == lock.Exclusive && l.slots < 2 }

func (l *leased) covers(other *leased) bool {
	for _, p := range l.paths {
		for _, q := range other.paths {
			if len(p) <= len(q) && slices.Equal(p, q[:len(p)]) {
				return true
			}
		}
	}
	return false
}

// bars reports whether one keeps the other out, as the server has it.
func (l *leased) bars(other *leased) bool {
	at := l.covers(other) && other.covers(l)
	if at && l.slots > 1 && other.slots > 1 {
		return false
	}
	return l.mode == lock.Exclusive && l.covers(other) || other.mode == lock.Exclusive && other.covers(l)
}

var errOffline = errors.New("the network is down")

// browser sends in a session of its own.
type browser struct {
	net     *internet
	session string
	deaf    bool // what it asks for is answered to nobody; guarded by the internet's mutex
	// onGrant, where set, is called when the server has granted, before the reply is on its way.
	onGrant func()
}

func (n *internet) set(down bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = down
}

// cut breaks off what waits for an answer, for once.
func (n *internet) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	close(n.broken)
	n.broken = make(chan struct{})
}

// wipe empties the server. Its tokens begin anew.
func (n *internet) wipe() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.leases, n.token, n.content, n.written, n.save = nil, 0, nil, 0, remote.Save{}
	n.change()
}

// expire ends all leases.
func (n *internet) expire() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.leases = nil
	n.change()
}

func record(token int64) lock.Record {
	now := time.Now()
	return lock.Record{Token: token, AcquiredAt: now, ExpiresAt: now.Add(30 * time.Second)}
}

func (n *internet) silence(on bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.silent = on
}

func (n *internet) requests() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]string(nil), n.log...)
}

// live returns the leases that have not expired.
func (n *internet) live() []*leased {
	n.leases = slices.DeleteFunc(n.leases, func(l *leased) bool { return !time.Now().Before(l.expires) })
	return n.leases
}

var document = []string{"documents", "project"}

// now returns the lock of the document, or nil.
func (n *internet) now() *leased {
	for _, l := range n.live() {
		if slices.Equal(l.paths[0], document) && l.whole() {
			return l
		}
	}
	return nil
}

// held returns who holds the document as a whole, "" for nobody.
func (n *internet) held() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if l := n.now(); l != nil {
		return l.session
	}
	return ""
}

// places returns the session, paths and mode of each lease, the oldest first.
func (n *internet) places() (all []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range n.live() {
		text := l.session + " " + string(l.mode)
		for _, p := range l.paths {
			text += " " + strings.Join(p, "/")
		}
		all = append(all, text)
	}
	return all
}

func (n *internet) change() {
	close(n.changed)
	n.changed = make(chan struct{})
}

func (n *internet) remove(gone *leased) {
	n.leases = slices.DeleteFunc(n.leases, func(l *leased) bool { return l == gone })
	n.change()
}

func (n *internet) note(waitMS int64, ticket string) {
	if waitMS > 0 {
		n.tickets = append(n.tickets, ticket)
	}
}

func (b *browser) Send(ctx context.Context, r remote.Request) (remote.Reply, error) {
	if ctx.Err() != nil {
		return remote.Reply{}, context.Cause(ctx)
	}
	target, err := url.Parse(r.Path)
	if err != nil {
		return remote.Reply{}, err
	}
	n := b.net
	n.mu.Lock()
	defer n.mu.Unlock()
	n.log = append(n.log, r.Method+" "+b.session)
	id, place := strings.CutPrefix(r.Path, "/api/locks/")
	switch {
	case n.silent || b.deaf:
		n.mu.Unlock()
		<-ctx.Done()
		n.mu.Lock()
		return remote.Reply{}, context.Cause(ctx)
	case n.down:
		return remote.Reply{}, errOffline
	case n.refuse.Status != 0:
		return n.refuse, nil
	case strings.HasSuffix(r.Path, "/content"):
		return b.exchange(ctx, r)
	case r.Path == "/api/locks":
		ms, _ := r.Fields["wait_ms"].(int64)
		ticket, _ := r.Fields["ticket"].(string)
		n.note(ms, ticket)
		return b.lock(ctx, asked(b.session, r.Fields), ms, r.Fields["fresh"] == true)
	case strings.HasSuffix(target.Path, "/lock/ask"):
		return b.ask(ctx, r)
	case strings.HasSuffix(target.Path, "/lock/accept"), strings.HasSuffix(target.Path, "/lock/refuse"):
		return b.reply(r), nil
	case r.Method == "POST":
		ms, _ := strconv.ParseInt(target.Query().Get("wait_ms"), 10, 64)
		n.note(ms, target.Query().Get("ticket"))
		whole := &leased{session: b.session, paths: [][]string{document}, mode: lock.Exclusive}
		return b.lock(ctx, whole, ms, target.Query().Has("fresh"))
	}
	found := n.now()
	if place {
		found = nil
		for _, l := range n.live() {
			if strconv.FormatInt(l.token, 10) == id {
				found = l
			}
		}
	}
	switch {
	case r.Method == "GET" && found == nil:
		return remote.Reply{Status: 200}, nil
	case r.Method == "GET":
		return remote.Reply{Status: 200, Token: found.token, LockedAt: found.locked, ExpiresAt: found.expires, HolderName: "tab " + found.session, Mine: found.session == b.session}, nil
	case found == nil && r.Method == "DELETE":
		return remote.Reply{Status: 200}, nil
	case found == nil:
		return remote.Reply{Status: 404, Error: "lock_not_found", Message: "There is no such lock."}, nil
	case found.session != b.session:
		return remote.Reply{Status: 403, Error: "not_locked_by_user", Message: "It is somebody else's."}, nil
	case r.Token != 0 && r.Token != found.token:
		return remote.Reply{Status: 409, Error: "stale_token", Message: "That lock has ended."}, nil
	case r.Method == "DELETE":
		n.remove(found)
		return remote.Reply{Status: 200}, nil
	}
	found.expires = time.Now().Add(n.ttl)
	return remote.Reply{Status: 200, ExpiresAt: found.expires}, nil
}

// asked reads a request for places.
func asked(session string, fields map[string]any) *leased {
	return &leased{session: session, mode: lock.Mode(fields["mode"].(string)), slots: fields["slots"].(int), paths: fields["paths"].([][]string)}
}

// inTheWay returns what keeps a request out, and gives it the lowest slot that is free.
func (n *internet) inTheWay(r *leased) (in []*leased) {
	taken := make(map[int]*leased)
	if q := n.question; q != nil && q.by != r.session {
		in = append(in, &leased{session: q.by, expires: time.Now().Add(time.Minute)}) // it is first in line
	}
	for _, l := range n.live() {
		if l.bars(r) {
			in = append(in, l)
		} else if l.covers(r) && r.covers(l) && l.slots > 1 && r.slots > 1 {
			taken[l.slot] = l
		}
	}
	for r.slot = 0; taken[r.slot] != nil; r.slot++ {
	}
	if r.slots > 1 && r.slot >= r.slots {
		in = append(in, taken[0])
	}
	return in
}

// lock is called with the mutex held, and returns so.
func (b *browser) lock(ctx context.Context, r *leased, waitMS int64, fresh bool) (remote.Reply, error) {
	n := b.net
	limit := time.After(time.Duration(waitMS) * time.Millisecond)
	for in := n.inTheWay(r); len(in) > 0; in = n.inTheWay(r) {
		first := in[0]
		switch {
		case fresh && first.session == b.session && (r.whole() && r.covers(first) || first.whole() && first.covers(r)):
			n.remove(first)
			continue
		case n.circle && waitMS > 0:
			return remote.Reply{Status: 409, Error: "deadlock", Message: "Waiting would never end."}, nil
		}
		changed, broken, expiry := n.changed, n.broken, time.NewTimer(time.Until(first.expires))
		n.mu.Unlock()
		done, gone, cut := false, false, false
		select {
		case <-changed:
		case <-broken:
			cut = true
		case <-expiry.C:
		case <-limit:
			done = true
		case <-ctx.Done():
			gone = true
		}
		expiry.Stop()
		n.mu.Lock()
		switch {
		case gone:
			return remote.Reply{}, context.Cause(ctx)
		case cut:
			return remote.Reply{}, errOffline
		case done:
			return remote.Reply{Status: 409, Error: "acquire_denied", HolderName: "tab " + first.session, Mine: first.session == b.session}, nil
		}
	}
	n.token++
	r.token, r.locked, r.expires = n.token, time.Now(), time.Now().Add(n.ttl)
	n.leases = append(n.leases, r)
	n.change()
	reply := remote.Reply{Status: 200, Lease: strconv.FormatInt(r.token, 10), Token: r.token, Slot: r.slot, LockedAt: r.locked, ExpiresAt: r.expires}
	if b.onGrant != nil {
		n.mu.Unlock()
		b.onGrant()
		n.mu.Lock()
		if ctx.Err() != nil {
			if !r.covers(&leased{paths: [][]string{document}}) {
				n.remove(r) // the server sees that nobody reads its answer
			}
			return remote.Reply{}, context.Cause(ctx)
		}
	}
	return reply, nil
}
