package remote

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/wait"
	"github.com/holdfast-dev/holdfast/lock"
)

// acquisition is one acquisition on the server. Each of its requests names it, so that what the network delays, repeats or
// loses touches no other one.
type acquisition struct {
	ticket string
	// replace are the tokens of leases that a tab of this browser left on the server.
	replace []int64
	// passOn has the server pass what it replaces on to this acquisition, before all who wait.
	passOn bool
	// unheard tells that a request had no answer: the server may grant it now or later.
	unheard bool
	local   lock.Grant // on this machine
}

// replaced spells the tokens for a query.
func (a acquisition) replaced() string {
	texts := make([]string, len(a.replace))
	for i, token := range a.replace {
		texts[i] = itoa(token)
	}
	return strings.Join(texts, ",")
}

// query spells the acquisition for a query.
func (a acquisition) query() string {
	text := "ticket=" + a.ticket + "&replace=" + a.replaced()
	if a.passOn {
		text += "&pass_on=true"
	}
	return text
}

// replaceLimit is how often a request is repeated because the server names more that a tab left.
const replaceLimit = 8

// acquire sends a request of the acquisition. The server grants nothing to a browser that bears no session yet, and answers with
// one: acquire asks again. Where the server names leases that a tab of this browser left, it asks again and replaces them. It never replaces what another tab acquired meanwhile: after the answer it makes sure that this page
// still has the lock between the tabs.
func (l *link) acquire(ctx context.Context, limit time.Duration, a *acquisition, request func() Request) (reply Reply, err error) {
	bare := false // the request before this one bore no session
	for range replaceLimit {
		reply, err = l.sendFor(ctx, limit, request())
		if passing(reply, err) {
			a.unheard = a.unheard || !unsent(err)
			return reply, err
		}
		l.settle(ctx)
		switch {
		case reply.Status == statusOK && reply.Ticket != a.ticket:
			return Reply{}, l.outdated()
		case reply.Error == "given_up": // by an earlier life of this ticket, which nobody remembers
			a.ticket, a.unheard = lock.NewID(), false
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

// stillHere fails where the lock of this machine was taken away before now. A page that wakes may find an answer of the server
// before the message that another tab stole the lock: a round trip to the keeper of the lock brings that first.
func (l *link) stillHere(ctx context.Context, local lock.Grant) error {
	if late, ok := local.(lock.LateGrant); ok {
		if err := late.Look(ctx, lock.SystemClock{}.Now()); err != nil {
			return err
		}
	} else if _, err := l.local.Query(ctx); err != nil {
		return err
	}
	if wait.Closed(local.Lost()) {
		return robbed()
	}
	return context.Cause(ctx)
}

func robbed() error {
	return &lock.Error{Code: lock.CodeDenied, Operation: lock.OpAcquire, Detail: "another tab took it over at the same moment"}
}

// outdated is the error for a server that does not know tickets: what it grants may be the lease of another tab.
func (l *link) outdated() error {
	return &lock.Error{Code: lock.CodeUnsupported, Operation: lock.OpAcquire, Resource: l.resource,
		Detail: "the server is older than this page and does not know tickets; update the server"}
}

// cookieless is the error for a browser that does not send the cookie that the server has just set.
func (l *link) cookieless() error {
	return &lock.Error{Code: lock.CodeUnsupported, Operation: lock.OpAcquire, Resource: l.resource,
		Detail: "the browser does not send the cookie of the server, which tells whose lock it is; allow cookies, and serve the page from the server's own site"}
}

// owed are the acquisitions that the server has not heard the end of, each with the time until which it may keep a lease.
type owed struct {
	mu    sync.Mutex
	until map[string]time.Time
}

// giveUpLimit is how long a server keeps a lease that nobody renews.
const giveUpLimit = 30 * time.Second

// giveUp ends an acquisition on the server, which may have granted it without this page having heard, or may be about to. A
// server that cannot be reached hears of it with the next request that it answers.
func (l *link) giveUp(ctx context.Context, ticket string) {
	if !l.withdraw(context.WithoutCancel(ctx), ticket) {
		l.owe(ticket)
	}
}

func (l *link) owe(ticket string) {
	l.owed.mu.Lock()
	defer l.owed.mu.Unlock()
	if l.owed.until == nil {
		l.owed.until = make(map[string]time.Time)
	}
	l.owed.until[ticket] = time.Now().Add(giveUpLimit)
}

// settle tells a server that answers again which acquisitions have ended meanwhile.
func (l *link) settle(ctx context.Context) {
	l.owed.mu.Lock()
	open := l.owed.until
	l.owed.until = nil
	l.owed.mu.Unlock()
	for ticket, until := range open {
		if time.Now().Before(until) {
			l.giveUp(ctx, ticket)
		}
	}
}

// withdraw reports whether the server has heard.
func (l *link) withdraw(ctx context.Context, ticket string) bool {
	reply, err := l.send(ctx, Request{Method: "DELETE", Path: "/api/locks?ticket=" + ticket})
	return !passing(reply, err)
}
