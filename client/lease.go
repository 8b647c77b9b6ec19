package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/lock"
)

var clock lock.SystemClock

// Lease is a lock that this client holds until [Lease.Release], or until it is lost.
type Lease struct {
	client   *Client
	owner    *owner
	session  string // of the owner
	resource string
	grant    grantBody
	ttl      time.Duration
	lost     chan struct{}
	ctx      context.Context // ends with the lease
	over     context.CancelCauseFunc

	mu      sync.Mutex
	renewed lock.Instant // when the latest request that counted was sent
	err     error        // why the lease has ended
}

// hold begins a lease that was granted to a request sent at that time.
func (a *acquisition) hold(g grantBody, sent lock.Instant) *Lease {
	l := &Lease{client: a.Client, owner: a.owner, session: a.owner.name, resource: a.resource, grant: g,
		ttl: g.ExpiresAt.Sub(g.LockedAt), lost: make(chan struct{}), renewed: sent}
	l.ctx, l.over = context.WithCancelCause(context.Background())
	a.mu.Lock()
	a.leases[l] = struct{}{}
	a.mu.Unlock()
	a.running.Go(l.keep)
	return l
}

// Token is the fencing token: greater than that of every earlier grant of the server.
func (l *Lease) Token() int64 { return l.grant.Token }

// ID names the lease on the server.
func (l *Lease) ID() string { return l.grant.LeaseID }

// Slot is the number of the slot, from 0.
func (l *Lease) Slot() int { return l.grant.Slot }

// TTL is after how long without a renewal the lease ends.
func (l *Lease) TTL() time.Duration { return l.ttl }

// Lost is closed when the lease was lost: it could not be renewed in time, was broken, or is not allowed any more. Release does not close it.
func (l *Lease) Lost() <-chan struct{} { return l.lost }

// Err returns nil while the lease is held, by the clocks at this moment. Otherwise it returns an error that matches [ErrLost] or
// [ErrReleased].
func (l *Lease) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lookAtClocks()
	return l.err
}

// left returns how long the holder relies on the lease without a further renewal. The clock of a server may run a little faster than
// the holder's, by up to a thousandth while both are adjusted. With this margin, the holder stops first.
func (l *Lease) left() time.Duration { return l.ttl - l.ttl/500 - clock.Now().Since(l.renewed) }

func (l *Lease) lookAtClocks() {
	if l.err == nil && l.left() <= 0 {
		l.lose("it was not renewed within its TTL of "+l.ttl.String(), nil)
	}
}

// lose ends the lease; the caller holds mu.
func (l *Lease) lose(why string, cause error) {
	if l.err == nil {
		l.err = &Error{Code: ErrLost.Code, Operation: "hold", Resource: l.resource, Message: why, Err: cause}
		close(l.lost)
		l.over(l.err)
	}
}

// Context returns a context that ends when the lease does; its cause matches [ErrLost] or [ErrReleased]. An acquisition with it is nested: it
// has the owner of this lease. The server ends it with [ErrDeadlock] if it and acquisitions of others would wait for each other forever,
// and it fails with [ErrReentrant] if this lease, one around it, or another one within these is in the way.
func (l *Lease) Context(parent context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(context.WithValue(parent, leaseKey{}, l))
	stop := context.AfterFunc(l.ctx, func() { cancel(context.Cause(l.ctx)) })
	context.AfterFunc(ctx, func() { stop() })
	return ctx
}

type leaseKey struct{}

// Renew extends the lease now. The client renews by itself; a caller that was busy can use Renew to be sure that the lease is valid. It fails with
// [ErrLost], [ErrReleased], [ErrUnreachable] and [ErrAborted].
func (l *Lease) Renew(ctx context.Context) error {
	end := time.Now().Add(l.client.config.Patience)
	_, err := l.client.until(ctx, end, func() (reply, error) { return reply{}, l.renew(ctx) })
	return named(err, "renew", l.resource)
}

// renew sends one renewal.
func (l *Lease) renew(ctx context.Context) error {
	if err := l.Err(); err != nil {
		return err
	}
	sent := clock.Now()
	_, err := l.client.try(ctx, call{method: http.MethodPut, path: l.path(), session: l.session})
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.err != nil:
		return l.err // it ended meanwhile
	case err == nil:
		if sent.Since(l.renewed) > 0 {
			l.renewed = sent
		}
		l.lookAtClocks()
		return l.err
	case errors.Is(err, ErrLockNotFound), errors.Is(err, ErrNotHolder), errors.Is(err, ErrNotAllowed):
		l.lose("the server has ended it", err)
		return l.err
	}
	return err
}

func (l *Lease) path() string { return "/api/locks/" + url.PathEscape(l.grant.LeaseID) }

// tick is how often the clocks are compared: the timers of a suspended machine say nothing of the time that has passed.
const tick = time.Second

// keep renews the lease until it ends.
func (l *Lease) keep() {
	next, pause := l.ttl/3, pauses()
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-time.After(min(next, tick, l.untilEnd())):
		}
		if l.Err() != nil {
			return
		}
		if next -= tick; next > 0 {
			continue
		}
		ctx, cancel := context.WithTimeoutCause(l.ctx, l.untilEnd(), errors.New("the TTL is over"))
		err := l.renew(ctx)
		cancel()
		next = l.ttl / 3
		if err == nil {
			pause = pauses()
			continue
		}
		later, _ := mayPass(err)
		next = min(next, max(pause(), later))
	}
}

func (l *Lease) untilEnd() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left()
}

// Release gives the lock back. Calls after the first return nil. If the lease had been lost, Release returns that error: the work was not
// protected to its end. If the server cannot be reached, the lease ends with its TTL.
func (l *Lease) Release(ctx context.Context) error {
	l.mu.Lock()
	l.lookAtClocks()
	why := l.err
	if why == nil {
		l.err = &Error{Code: ErrReleased.Code, Operation: "hold", Resource: l.resource, Message: "it was released"}
		l.over(l.err)
	}
	l.mu.Unlock()
	if !l.client.forget(l) {
		return nil
	}
	_, err := l.client.do(ctx, call{method: http.MethodDelete, path: l.path(), session: l.session})
	err = unlessGone(err)
	l.client.owners.done(l.owner, err == nil)
	if why != nil {
		return why
	}
	return named(err, "release", l.resource)
}

// forget removes a lease, and reports whether it was there.
func (c *Client) forget(l *Lease) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, there := c.leases[l]
	delete(c.leases, l)
	return there
}

// Fence is the right to write under a lease. Another program that gets the Fence can write as this one. If the server has no users, keep
// the Fence as secret as a key.
type Fence struct {
	Session string
	Token   int64
}

// Fence returns the fence of the lease.
func (l *Lease) Fence() Fence { return Fence{Session: l.session, Token: l.grant.Token} }

// unlessGone is nil for a lock that has ended.
func unlessGone(err error) error {
	if errors.Is(err, ErrNotHolder) || errors.Is(err, ErrLockNotFound) {
		return nil
	}
	return err
}
