package remote

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/wait"
	"github.com/holdfast-dev/holdfast/lock"
)

// acquisition is one acquisition on the server. Each of its requests names it. So a request that the network delays,
// repeats or loses affects no other acquisition.
type acquisition struct {
	ticket string
	// replace are the tokens of leases that a tab of this browser left behind on the server.
	replace []int64
	// passOn makes the server pass the replaced lease on to this acquisition, before all waiters.
	passOn bool
	// mayBeGranted says that a request had no answer: the server may have granted it, or may grant it later.
	mayBeGranted bool
	local        lock.Grant // on this machine
}

// replaced formats the tokens for a query.
func (a acquisition) replaced() string {
	texts := make([]string, len(a.replace))
	for i, token := range a.replace {
		texts[i] = itoa(token)
	}
	return strings.Join(texts, ",")
}

// query formats the acquisition for a query.
func (a acquisition) query() string {
	text := "ticket=" + a.ticket + "&replace=" + a.replaced()
	if a.passOn {
		text += "&pass_on=true"
	}
	return text
}

// replaceLimit is how often a request is repeated because the server names further leases that a tab left behind.
const replaceLimit = 8

// acquire sends a request of the acquisition. The server grants nothing to a browser without a session, and answers
// with a new session: acquire asks again. If the server names leases that a tab of this browser left behind, acquire
// asks again and replaces them. It never replaces a lease that another tab acquired meanwhile: after the answer it
// verifies that this page still holds the lock between the tabs.
func (l *client) acquire(ctx context.Context, limit time.Duration, a *acquisition, request func() Request) (reply Reply, err error) {
	bare := false // the previous request had no session
	for range replaceLimit {
		reply, err = l.sendFor(ctx, limit, request())
		if passing(reply, err) {
			a.mayBeGranted = a.mayBeGranted || !unsent(err)
			return reply, err
		}
		l.confirmEnds(ctx)
		switch {
		case reply.Status == statusOK && reply.Ticket != a.ticket:
			return Reply{}, l.outdated()
		case reply.Error == "given_up": // by an earlier use of this ticket, which this page does not remember
			a.ticket, a.mayBeGranted = lock.NewID(), false
			return reply, nil
		case reply.Error == "no_session" && bare:
			return Reply{}, l.cookieless()
		case reply.Error == "no_session":
			bare = true
			continue
		case reply.Error != "left_behind":
			return reply, nil
		}
		bare = false
		if err = l.stillHere(ctx, a.local); err != nil {
			return Reply{}, err
		}
		a.replace = reply.Tokens
	}
	return reply, err
}

// stillHere fails if the lock of this machine has been stolen. A page that wakes may receive an answer of the server
// before the message that another tab stole the lock. A round trip to the Locker makes that message arrive first.
func (l *client) stillHere(ctx context.Context, local lock.Grant) error {
	if _, err := l.local.Query(ctx); err != nil {
		return err
	}
	if err := local.Look(ctx, lock.SystemClock{}.Now()); err != nil {
		return err
	}
	if wait.Closed(local.Lost()) {
		return stolenHere()
	}
	return context.Cause(ctx)
}

func stolenHere() error {
	return &lock.Error{Code: lock.CodeDenied, Operation: lock.OpAcquire, Detail: "another tab took it over at the same moment"}
}

// outdated is the error for a server that does not know tickets: its grant may be the lease of another tab.
func (l *client) outdated() error {
	return &lock.Error{Code: lock.CodeUnsupported, Operation: lock.OpAcquire, Resource: l.resource,
		Detail: "the server is older than this page and does not know tickets; update the server"}
}

// cookieless is the error for a browser that does not send the cookie that the server has just set.
func (l *client) cookieless() error {
	return &lock.Error{Code: lock.CodeUnsupported, Operation: lock.OpAcquire, Resource: l.resource,
		Detail: "the browser does not send the cookie of the server, which tells whose lock it is; allow cookies, and serve the page from the server's own site"}
}

// unconfirmed are the acquisitions whose end the server has not received, each with the time until which it may keep a lease.
type unconfirmed struct {
	mu    sync.Mutex
	until map[string]time.Time
}

// giveUpLimit is how long a server keeps a lease that nobody renews, if its grant did not say that.
const giveUpLimit = 30 * time.Second

// giveUp ends an acquisition on the server. The server may have granted it without this page knowing, or may be about
// to. A server that cannot be reached receives this with the next request that it answers within limit.
func (l *client) giveUp(ctx context.Context, ticket string, limit time.Duration) {
	if !l.withdraw(context.WithoutCancel(ctx), ticket) {
		l.endLater(ticket, limit)
	}
}

// endLater ends an acquisition with the next request that the server answers within limit.
func (l *client) endLater(ticket string, limit time.Duration) {
	l.unconfirmed.mu.Lock()
	defer l.unconfirmed.mu.Unlock()
	if l.unconfirmed.until == nil {
		l.unconfirmed.until = make(map[string]time.Time)
	}
	l.unconfirmed.until[ticket] = time.Now().Add(limit)
}

// confirmEnds informs a server that answers again about the acquisitions that have ended meanwhile. It does so for all of them
// at the same time: the server may be slow, and what it has just granted must not expire.
func (l *client) confirmEnds(ctx context.Context) {
	l.unconfirmed.mu.Lock()
	open := l.unconfirmed.until
	l.unconfirmed.until = nil
	l.unconfirmed.mu.Unlock()
	var told sync.WaitGroup
	for ticket, until := range open {
		told.Go(func() {
			if left := time.Until(until); left > 0 {
				l.giveUp(ctx, ticket, left)
			}
		})
	}
	told.Wait()
}

// withdraw reports whether the server has received the end.
func (l *client) withdraw(ctx context.Context, ticket string) bool {
	reply, err := l.send(ctx, Request{Method: "DELETE", Path: "/api/locks?ticket=" + ticket})
	return !passing(reply, err) && !notAllowed(reply)
}
