package client

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/document"
	"github.com/holdfast-dev/holdfast/internal/wait"
	"github.com/holdfast-dev/holdfast/lock"
)

// Request says what to acquire.
type Request struct {
	// Document is the id of a document; Paths are places, each with its components from the root down. Exactly one of them is given.
	// Several paths are granted all together or not at all.
	Document string
	Paths    [][]string
	// Mode is [Exclusive] by default. Ancestors are always shared.
	Mode Mode
	// Slots is the number of holders that an exclusive target admits at once, 1 to 1000. All requests for it must give the same number. Default 1.
	Slots int
	// TTL is the time without a renewal after which the lease ends, from 100 ms to 1 h. Default is the server's, 30 s. The client renews after a third.
	TTL time.Duration
	// Wait is the maximum time to wait in the queue. 0 does not wait; [Forever] waits until the context ends.
	Wait time.Duration
}

// Forever as Request.Wait waits until the context ends.
const Forever time.Duration = -1

// round is how long one request waits. The next one has the same position in the queue.
const round = 15 * time.Second

// target returns the paths to lock, and the name of the target in errors.
func (r Request) target() (paths [][]string, name string, err error) {
	switch {
	case (r.Document == "") == (len(r.Paths) == 0):
		return nil, "", invalid("acquire", "", "give a Document or Paths")
	case r.Document == "":
		for _, p := range r.Paths {
			name += ", " + strings.Join(p, "/")
		}
		return r.Paths, name[2:], nil
	case !document.IsID(r.Document):
		return nil, "", badDocument("acquire", r.Document)
	}
	return [][]string{DocumentPath(r.Document)}, "the document " + r.Document, nil
}

func badDocument(operation, id string) error {
	return invalid(operation, "the document "+id, "a document's id has 1 to 128 characters of A-Z a-z 0-9 . _ ~ -")
}

// Acquire acquires a lock and renews it in the background until [Lease.Release]. The context bounds the acquisition, not the lease.
//
// Without a wait it fails with [ErrDenied], and with [ErrTimeout] when Wait is over. A nested acquisition (see [Lease.Context]) may fail with
// [ErrDeadlock] and [ErrReentrant]. Other errors are [ErrNotAllowed], [ErrUnauthenticated], [ErrInvalid], [ErrUnreachable], and [ErrAborted] with
// the cause of ctx. After an error the server keeps nothing of the acquisition. If the server cannot be reached then, it may keep a lease for one TTL.
func (c *Client) Acquire(ctx context.Context, r Request) (*Lease, error) {
	paths, name, err := r.target()
	if err != nil {
		return nil, err
	}
	ctx, ended, err := c.begin(ctx)
	if err != nil {
		return nil, named(err, "acquire", name)
	}
	defer ended()
	a := &acquisition{Client: c, resource: name, wait: r.Wait, begun: time.Now(), ticket: lock.NewID()}
	a.body = acquireBody{Paths: paths, Mode: r.Mode, Slots: r.Slots, TTL: r.TTL.Milliseconds(), HolderName: c.config.Name}
	if outer, _ := ctx.Value(leaseKey{}).(*Lease); outer != nil && outer.client == c && c.owners.share(outer.owner) {
		a.owner, a.nested = outer.owner, true
	} else {
		a.owner = c.owners.take()
	}
	lease, err := a.run(ctx)
	if err != nil {
		a.end()
		return nil, named(err, "acquire", name)
	}
	if c.background.Err() != nil { // Close has not seen it
		_ = lease.Release(context.WithoutCancel(ctx))
		return nil, named(aborted(ctx), "acquire", name)
	}
	return lease, nil
}

// acquisition is one acquisition under way.
type acquisition struct {
	*Client
	owner        *owner
	nested       bool // its owner may hold something
	resource     string
	body         acquireBody
	wait         time.Duration
	begun        time.Time
	ticket       string
	mayBeGranted bool // the server may have granted it
}

// left returns how long the acquisition may still wait.
func (a *acquisition) left() time.Duration {
	if a.wait < 0 {
		return round
	}
	return max(0, a.wait-time.Since(a.begun))
}

func (a *acquisition) run(ctx context.Context) (*Lease, error) {
	long := min(round, a.left())
	if a.nested {
		long = 0 // what the leases around it hold is seen at once
	}
	pause, silent := pauses(), time.Now()
	for {
		lease, err := a.ask(ctx, long)
		if err == nil {
			return lease, nil
		}
		if ctx.Err() != nil {
			return nil, aborted(ctx)
		}
		var e *Error
		if !errors.As(err, &e) {
			return nil, err
		}
		later, again := mayPass(err)
		switch {
		case again && a.left() == 0 && time.Since(silent) >= a.config.Patience:
			return nil, err
		case again && wait.For(ctx, max(pause(), later)) != nil:
			return nil, aborted(ctx)
		case again:
		case e.Code == "given_up": // the lease that an earlier answer granted has ended
			a.ticket = lock.NewID()
		case e.Code == "replaced": // an earlier request of this acquisition, whose answer comes late
		case a.reenters(e):
			return nil, &Error{Code: ErrReentrant.Code, Status: e.Status, Message: "a lease around this acquisition, or another one within that lease, is in its way", Holders: e.Holders}
		case !e.Is(ErrDenied) && !e.Is(ErrTimeout), a.left() == 0:
			return nil, err
		}
		if !again {
			silent = time.Now()
		}
		long = min(round, a.left())
	}
}

// reenters reports whether a lease of the acquisition's own owner denies it: a lease around it, or another lease within those. Two nested
// acquisitions could wait for each other forever, and the server does not find such a cycle among the requests of one owner.
func (a *acquisition) reenters(e *Error) bool {
	for _, h := range e.Holders {
		if a.nested && h.IsMine {
			return true
		}
	}
	return false
}

// ask sends one request, which waits so long in the queue.
func (a *acquisition) ask(ctx context.Context, long time.Duration) (*Lease, error) {
	a.body.Wait, a.body.Ticket = long.Milliseconds(), a.ticket
	sent := clock.Now()
	answer, err := a.try(ctx, call{method: http.MethodPost, path: "/api/locks", session: a.owner.name, json: a.body, limit: long + answerLimit})
	if _, again := mayPass(err); again || errors.Is(err, ErrAborted) {
		a.mayBeGranted = true
	}
	if err != nil {
		return nil, err
	}
	var g grantBody
	if err := answer.decode(&g); err != nil {
		return nil, err
	}
	ttl := g.ExpiresAt.Sub(g.LockedAt)
	if g.LeaseID == "" || g.Token <= 0 || ttl <= 0 {
		return nil, &Error{Code: "unexpected_answer", Message: "the server's answer is no grant"}
	}
	if long > 0 && clock.Now().Since(sent) > ttl/3 {
		a.mayBeGranted = true
		return a.ask(ctx, 0) // it was granted some time after the request was sent: with the ticket, the same lease is extended from now on
	}
	return a.hold(g, sent), nil
}

// end gives an acquisition up that has failed. The server may have granted it and this client may not know it.
func (a *acquisition) end() {
	if !a.mayBeGranted {
		a.owners.done(a.owner, true)
		return
	}
	a.running.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(a.background), a.config.Patience)
		defer cancel()
		_, err := a.do(ctx, call{method: http.MethodDelete, path: "/api/locks?ticket=" + a.ticket, session: a.owner.name})
		a.owners.done(a.owner, err == nil)
	})
}

// With acquires a lock, calls f with the [Lease.Context] and releases the lock, also when f panics. If the lease was lost while f ran, the
// error matches [ErrLost] besides that of f.
func (c *Client) With(ctx context.Context, r Request, f func(ctx context.Context, l *Lease) error) (err error) {
	l, err := c.Acquire(ctx, r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Release(context.WithoutCancel(ctx))) }()
	return f(l.Context(ctx), l)
}
