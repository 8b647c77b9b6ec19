package remote_test

import (
	"cmp"
	"context"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	documents "github.com/holdfast-dev/holdfast/internal/document"
	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/remote"
)

// leased is a lease on the server, or a request for one.
type leased struct {
	session         string // the owner
	browser         string
	paths           [][]string
	mode            lock.Mode
	slots, slot     int
	token           int64
	locked, expires time.Time

	ticket       string
	fresh, exact bool
	replace      []int64
	again        bool // a repeated request of the owner extends it
	wait         time.Duration
	place        int64 // in the queue
	first        bool  // it passes all others: the holder passes the lock on to it
	passOn       bool  // the replaced lease is passed on to it
}

// stub is the server's record of a ticket.
type stub struct {
	place int64
	visit *leased // the last request with the ticket
	gone  bool    // the acquisition has ended
}

// stubKept is how long a place in the queue is kept.
const stubKept = 30 * time.Second

var ticketName = regexp.MustCompile(`^[A-Za-z0-9_-]{0,128}$`)

func (l *leased) key() string { return l.session + "/" + l.ticket }

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

// bars reports whether one excludes the other on the server.
func (l *leased) bars(other *leased) bool {
	at := l.covers(other) && other.covers(l)
	if at && l.slots > 1 && l.slots == other.slots {
		return false
	}
	return l.mode == lock.Exclusive && l.covers(other) || other.mode == lock.Exclusive && other.covers(l)
}

// same reports whether both are for the same paths.
func (l *leased) same(other *leased) bool {
	return l.mode == other.mode && max(1, l.slots) == max(1, other.slots) && slices.EqualFunc(l.paths, other.paths, slices.Equal)
}

// supersedes reports whether a lock between the tabs of the owner would have excluded the other.
func (l *leased) supersedes(other *leased) bool {
	return l.session == other.session && (l.whole() && l.covers(other) || other.whole() && other.covers(l))
}

// documentIn returns the id of the document in a path.
func documentIn(target *url.URL) string {
	id, _, _ := strings.Cut(strings.TrimPrefix(target.Path, "/api/documents/"), "/")
	return id
}

// wholeRequest reads a request for the lock of the document, or of one below it.
func (b *browser) wholeRequest(target *url.URL) *leased {
	query := target.Query()
	r := &leased{session: b.owner(), paths: [][]string{append([]string{"documents"}, documents.Path(documentIn(target))...)}, mode: lock.Exclusive, ticket: query.Get("ticket"),
		fresh: query.Get("fresh") == "true", exact: query.Has("replace"),
		passOn: query.Get("pass_on") == "true", browser: query.Get("browser"), again: true}
	ms, _ := strconv.ParseInt(query.Get("wait_ms"), 10, 64)
	r.wait = time.Duration(ms) * time.Millisecond
	for _, text := range strings.Split(query.Get("replace"), ",") {
		if token, err := strconv.ParseInt(text, 10, 64); err == nil {
			r.replace = append(r.replace, token)
		}
	}
	return r
}

// asked reads a request for places.
func asked(session string, fields map[string]any) *leased {
	r := &leased{session: session, mode: lock.Exclusive, paths: fields["paths"].([][]string), fresh: fields["fresh"] == true}
	if mode, ok := fields["mode"].(string); ok {
		r.mode = lock.Mode(mode)
	}
	r.slots, _ = fields["slots"].(int)
	r.ticket, _ = fields["ticket"].(string)
	r.browser, _ = fields["browser"].(string)
	r.replace, r.exact = fields["replace"].([]int64)
	r.passOn = fields["pass_on"] == true
	ms, _ := fields["wait_ms"].(int64)
	r.wait = time.Duration(ms) * time.Millisecond
	return r
}

// blockers returns the leases that block a request, and gives the request the lowest free slot.
func (n *internet) blockers(r *leased) (in []*leased) {
	taken := make(map[int]*leased)
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

// ahead reports whether an earlier request waits for the same.
func (n *internet) ahead(r *leased) bool {
	if r.first {
		return false
	}
	for _, q := range n.questions {
		if q.request != r && q.by != r.session && q.request.bars(r) {
			return true // it is first in the queue
		}
	}
	return slices.ContainsFunc(n.line, func(other *leased) bool {
		return other != r && (r.place == 0 || other.place < r.place) && (other.bars(r) || other.slots > 1 && other.covers(r))
	})
}

// enter puts a request at the end of the queue, or at the place of an earlier one with its ticket.
func (n *internet) enter(r *leased) {
	n.token++
	r.place = n.token
	if r.ticket != "" {
		s := n.stubs[r.key()]
		if s == nil {
			s = &stub{place: r.place}
			n.stubs[r.key()] = s
		}
		r.place, s.visit = s.place, r
	}
	n.line = append(n.line, r)
	slices.SortFunc(n.line, func(a, b *leased) int { return cmp.Compare(a.place, b.place) })
	n.change()
}

// leave removes a request from the queue. Its place is kept for a while.
func (n *internet) leave(r *leased) {
	if r.place == 0 {
		return
	}
	n.line = slices.DeleteFunc(n.line, func(other *leased) bool { return other == r })
	n.change()
	if s := n.stubs[r.key()]; s != nil && s.visit == r && !s.gone {
		time.AfterFunc(stubKept, func() {
			n.mu.Lock()
			defer n.mu.Unlock()
			if s.visit == r && !s.gone && !slices.Contains(n.line, r) {
				delete(n.stubs, r.key())
			}
		})
	}
}

// release releases a lease. Its acquisition ends too.
func (n *internet) release(l *leased) {
	n.end(l.key(), l.ticket)
	n.remove(l)
}

// end makes later requests of an acquisition fail.
func (n *internet) end(key, ticket string) {
	if ticket == "" {
		return
	}
	n.stubs[key] = &stub{gone: true}
	time.AfterFunc(2*stubKept, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.stubs, key)
	})
}

// giveUp ends an acquisition, whatever its state.
func (n *internet) giveUp(owner, ticket string) remote.Reply {
	if ticket == "" {
		return remote.Reply{Status: 400, Error: "invalid_request"}
	}
	key := owner + "/" + ticket
	n.end(key, ticket)
	for _, l := range slices.Clone(n.live()) {
		if l.key() == key {
			n.remove(l)
		}
	}
	n.change()
	return remote.Reply{Status: 200}
}

// byName returns the lease of that name, or nil.
func (n *internet) byName(name string) *leased {
	for _, l := range n.live() {
		if strconv.FormatInt(l.token, 10) == name {
			return l
		}
	}
	return nil
}

// makeWay ends the leases that a request may end, and returns the answer if there is one already.
func (n *internet) makeWay(r *leased) (reply remote.Reply, answered bool) {
	in := n.blockers(r)
	if r.again && !r.fresh && !r.exact && len(in) == 1 && in[0].session == r.session && in[0].same(r) {
		return n.extend(in[0]), true
	}
	var left []int64
	for _, l := range in {
		switch {
		case !r.supersedes(l):
		case r.fresh && !l.exact && r.browser == l.browser, r.exact && slices.Contains(r.replace, l.token):
			n.release(l)
			r.first = r.first || r.passOn && r.wait > 0
		case r.exact && r.browser == l.browser:
			left = append(left, l.token)
		}
	}
	return remote.Reply{Status: 409, Error: "left_behind", Tokens: left}, len(left) > 0
}

func (n *internet) extend(l *leased) remote.Reply {
	l.expires = time.Now().Add(n.ttl)
	return l.reply()
}

func (l *leased) reply() remote.Reply {
	return remote.Reply{Status: 200, Lease: strconv.FormatInt(l.token, 10), Token: l.token, Slot: l.slot, LockedAt: l.locked, ExpiresAt: l.expires, Ticket: l.ticket}
}

// repeated returns the answer to a request whose ticket has an answer already.
func (n *internet) repeated(r *leased) (reply remote.Reply, answered bool) {
	switch {
	case !ticketName.MatchString(r.ticket + r.browser):
		return remote.Reply{Status: 400, Error: "invalid_request"}, true
	case r.ticket == "":
		return reply, false
	}
	for _, l := range n.live() {
		if l.key() == r.key() && l.same(r) {
			l.locked = time.Now() // as in an answer that came at once
			return n.extend(l), true
		}
	}
	s := n.stubs[r.key()]
	switch {
	case s == nil:
		return reply, false
	case s.gone:
		return remote.Reply{Status: 409, Error: "given_up"}, true
	case r.wait > 0 && !s.visit.same(r):
		return remote.Reply{Status: 400, Error: "invalid_request"}, true
	case r.place != 0 && s.visit != r:
		return remote.Reply{Status: 409, Error: "replaced"}, true
	}
	return reply, false
}

// noSession is the answer to a browser without a session.
var noSession = remote.Reply{Status: 409, Error: "no_session"}

// lock is called with the mutex held, and returns with it held.
func (b *browser) lock(ctx context.Context, r *leased) (remote.Reply, error) {
	n := b.net
	if b.visitor && r.exact {
		return noSession, nil
	}
	if r.wait > 0 {
		n.tickets = append(n.tickets, r.ticket)
	}
	if reply, answered := n.repeated(r); answered {
		return reply, nil
	}
	if reply, answered := n.makeWay(r); answered {
		return reply, nil
	}
	defer n.leave(r)
	limit := time.Now().Add(r.wait)
	for in := n.blockers(r); len(in) > 0 || n.ahead(r); in = n.blockers(r) {
		switch {
		case n.cycle && r.wait > 0:
			return remote.Reply{Status: 409, Error: "deadlock", Message: "Waiting would never end."}, nil
		case !time.Now().Before(limit):
			return b.denial(r, in), nil
		case r.place == 0:
			n.enter(r)
			continue
		}
		pause := time.Until(limit)
		for _, l := range in {
			pause = min(pause, time.Until(l.expires))
		}
		if err := n.pause(ctx, pause); err != nil {
			return remote.Reply{}, err
		}
		if reply, answered := n.repeated(r); answered {
			return reply, nil
		}
	}
	n.token++
	r.token, r.locked, r.expires = n.token, time.Now(), time.Now().Add(n.ttl)
	n.leases = append(n.leases, r)
	delete(n.stubs, r.key())
	n.change()
	reply := r.reply()
	if b.onGrant != nil {
		n.mu.Unlock()
		b.onGrant()
		n.mu.Lock()
	}
	return reply, nil
}

// pause waits, without the mutex, until something changes.
func (n *internet) pause(ctx context.Context, limit time.Duration) (err error) {
	changed, broken, timer := n.changed, n.broken, time.NewTimer(limit)
	defer timer.Stop()
	n.mu.Unlock()
	defer n.mu.Lock()
	select {
	case <-changed:
	case <-broken:
		err = errOffline
	case <-timer.C:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	return err
}

func (b *browser) denial(r *leased, in []*leased) remote.Reply {
	reply := remote.Reply{Status: 409, Error: "acquire_denied"}
	switch {
	case r.again:
		reply.Error = "already_locked"
	case r.wait > 0:
		reply.Status, reply.Error = 408, "acquire_timeout"
	}
	if len(in) > 0 {
		reply.HolderName, reply.Mine = "tab "+in[0].session, in[0].session == b.owner()
	}
	return reply
}
