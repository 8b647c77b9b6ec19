package remote_test

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/remote"
)

// internet is a server in memory and the network to it.
type internet struct {
	ttl time.Duration

	mu      sync.Mutex
	leases  []*leased
	token   int64
	changed chan struct{}
	line    []*leased        // waiting requests, in order of their places
	stubs   map[string]*stub // by owner and ticket
	broken  chan struct{}    // closed when waiting requests are disconnected
	down    bool
	silent  bool            // no answer comes, until the request is abandoned
	cycle   bool            // every waiter gets the answer that it waits in a cycle
	refuse  remote.Reply    // if Status is set, the answer to everything
	users   map[string]bool // the tokens of users; nil: there are no users
	// refuseReading and refuseSaving, if Status is set, are the answers to requests that read or write the content.
	refuseReading, refuseSaving remote.Reply
	log                         []string           // method and session of each request that arrived
	tickets                     []string           // of those for a lock that may wait
	stored                                         // of the project
	below                       map[string]*stored // of the documents below it
	// Questions of clients to each other, through the server.
	questions map[string]*inquiry // by document
	notices   []heard
	listening int // connections
	// answer, if set, is called after a request was carried out, before the reply is sent: the client gets its error
	// instead. The mutex is not held.
	answer func(remote.Request) error
	// delay, if set, is called before a request is carried out. If it returns true, the request is carried out even if
	// its client has abandoned it. The mutex is not held.
	delay func(remote.Request) bool
}

func newInternet() *internet {
	return &internet{ttl: 30 * time.Second, changed: make(chan struct{}), broken: make(chan struct{}), token: 100, stubs: make(map[string]*stub), questions: make(map[string]*inquiry), below: make(map[string]*stored)}
}

var errOffline = errors.New("the network is down")

// browser sends in a session of its own.
type browser struct {
	net     *internet
	session string // "" for a first visit; the first answer brings a session. Guarded by the internet's mutex
	origin  string // of its page; "" is that of the server
	visitor bool   // this request has no session
	blocked bool   // it keeps no cookie
	deaf    bool   // no answer reaches it; guarded by the internet's mutex
	// onGrant, if set, is called after the server has granted, before the reply is sent.
	onGrant func()
	// onReply, if set, is called when a reply has arrived, before the page sees it, as for a page that is frozen then.
	onReply func(remote.Reply)
}

func (n *internet) set(down bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = down
}

// cut disconnects the waiting requests once.
func (n *internet) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	close(n.broken)
	n.broken = make(chan struct{})
}

// wipe empties the server. Its tokens begin again.
func (n *internet) wipe() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.leases, n.token, n.stored, n.below = nil, 0, stored{}, make(map[string]*stored)
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
	return n.on(&leased{paths: [][]string{document}, mode: lock.Exclusive})
}

// on returns the lock of exactly what r asks for, or nil.
func (n *internet) on(r *leased) *leased {
	return n.oldest(func(l *leased) bool { return l.whole() && l.same(r) })
}

// at returns the oldest lock that keeps others from what r asks for, or nil.
func (n *internet) at(r *leased) *leased { return n.oldest(func(l *leased) bool { return l.bars(r) }) }

func (n *internet) oldest(which func(*leased) bool) *leased {
	if i := slices.IndexFunc(n.live(), which); i >= 0 {
		return n.leases[i]
	}
	return nil
}

// held returns the holder of the whole document, "" for none.
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

// owner identifies the owner of this browser's locks: with the cookie, each origin is an owner of its own.
func (b *browser) owner() string {
	if b.origin == "" {
		return b.session
	}
	return b.session + "@" + b.origin
}

// Send implements [remote.Server]: the network may delay requests and lose answers.
func (b *browser) Send(ctx context.Context, r remote.Request) (remote.Reply, error) {
	if ctx.Err() != nil {
		return remote.Reply{}, context.Cause(ctx)
	}
	n := b.net
	n.mu.Lock()
	n.log = append(n.log, r.Method+" "+b.session)
	silent, down, delay, answer := n.silent || b.deaf, n.down, n.delay, n.answer
	as := b
	if b.session == "" {
		as = &browser{net: n, session: lock.NewID(), origin: b.origin, visitor: true}
	}
	n.mu.Unlock()
	switch {
	case silent:
		<-ctx.Done()
		return remote.Reply{}, context.Cause(ctx)
	case down:
		return remote.Reply{}, errOffline
	}
	done := make(chan result, 1)
	go func() { done <- as.answered(ctx, r, delay, answer) }()
	select {
	case got := <-done:
		if got.err != nil {
			return remote.Reply{}, got.err
		}
		n.mu.Lock()
		if !b.blocked {
			b.session = cmp.Or(b.session, as.session)
		}
		n.mu.Unlock()
		if b.onReply != nil {
			b.onReply(got.reply)
		}
		return got.reply, nil
	case <-ctx.Done():
		return remote.Reply{}, context.Cause(ctx)
	}
}

type result struct {
	reply remote.Reply
	err   error
}

// answered has the server answer a request. A delayed request arrives even after its caller has given up, and an answer may be lost.
func (b *browser) answered(ctx context.Context, r remote.Request, delay func(remote.Request) bool, answer func(remote.Request) error) (got result) {
	if delay != nil && delay(r) {
		ctx = context.WithoutCancel(ctx)
	}
	if got.err = context.Cause(ctx); got.err == nil {
		b.net.mu.Lock()
		got.reply, got.err = b.serve(ctx, r)
		b.net.mu.Unlock()
	}
	if answer != nil && got.err == nil {
		got.err = answer(r)
	}
	return got
}

// serve carries out a request. It is called with the mutex held, and returns with it held.
func (b *browser) serve(ctx context.Context, r remote.Request) (remote.Reply, error) {
	n := b.net
	target, err := url.Parse(r.Path)
	if err != nil {
		return remote.Reply{}, err
	}
	place, isPlace := strings.CutPrefix(target.Path, "/api/locks/")
	switch {
	case n.refuse.Status != 0:
		return n.refuse, nil
	case n.users != nil && !n.users[r.Bearer]:
		return unknownUser, nil
	case strings.HasSuffix(target.Path, "/content"):
		return b.access(r, target), nil
	case target.Path == "/api/locks" && r.Method == "DELETE":
		return n.giveUp(b.owner(), target.Query().Get("ticket")), nil
	case target.Path == "/api/locks":
		return b.lock(ctx, asked(b.owner(), r.Fields))
	case strings.HasSuffix(target.Path, "/lock/ask"):
		return b.ask(ctx, r, b.wholeRequest(target))
	case strings.HasSuffix(target.Path, "/lock/accept"), strings.HasSuffix(target.Path, "/lock/refuse"):
		return b.reply(r, target), nil
	case r.Method == "POST":
		return b.lock(ctx, b.wholeRequest(target))
	}
	whole := b.wholeRequest(target)
	found := n.on(whole)
	if isPlace {
		found = n.byName(place)
	}
	switch {
	case r.Method == "GET":
		return b.show(whole, n.at(whole)), nil
	case found == nil && r.Method == "DELETE":
		return remote.Reply{Status: 200}, nil
	case found == nil:
		return remote.Reply{Status: 404, Error: "lock_not_found", Message: "There is no such lock."}, nil
	case found.session != b.owner():
		return remote.Reply{Status: 403, Error: "not_locked_by_user", Message: "It is somebody else's."}, nil
	case !isPlace && r.Token != 0 && r.Token != found.token:
		return remote.Reply{Status: 409, Error: "stale_token", Message: "That lock has ended."}, nil
	case r.Method == "DELETE":
		n.release(found)
		return remote.Reply{Status: 200}, nil
	}
	found.expires = time.Now().Add(n.ttl)
	return remote.Reply{Status: 200, ExpiresAt: found.expires}, nil
}

// show returns the reply about the lock of a document or another one that is in its way, or about none.
func (b *browser) show(whole, l *leased) remote.Reply {
	if l == nil {
		return remote.Reply{Status: 200}
	}
	reply := remote.Reply{Status: 200, Token: l.token, LockedAt: l.locked, ExpiresAt: l.expires, HolderName: "tab " + l.session, Mine: l.session == b.owner()}
	if !l.same(whole) {
		reply.Paths = l.paths
	}
	if in := b.net.blockers(whole); len(in) > 1 {
		for _, one := range in {
			reply.Holders = append(reply.Holders, remote.Held{Paths: one.paths, HolderName: "tab " + one.session, Mine: one.session == b.owner()})
		}
	}
	return reply
}
