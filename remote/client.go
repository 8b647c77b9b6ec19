package remote

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast/internal/wait"
	"github.com/holdfast-dev/holdfast/lock"
)

// client is the connection to the server for the locks of one resource.
type client struct {
	server      *reach
	resource    string      // the name in leases and messages
	local       lock.Locker // of this machine
	questions   questions
	unconfirmed unconfirmed
	held        held
}

// claim is a lock that the server has granted.
type claim struct {
	ticket string        // of the acquisition
	path   string        // of its heartbeats and its release
	token  int64         // sent with these; see [Request]
	ttl    time.Duration // how long the server keeps it without a renewal
}

// claim returns the grant of a reply; path is its path on the server.
func (r Reply) claim(path string) claim {
	return claim{ticket: r.Ticket, path: path, token: r.Token, ttl: r.ExpiresAt.Sub(r.LockedAt)}
}

const (
	// waitLimit is how long one request waits. Its answer may be lost without a sign, as for a page that was frozen:
	// then the next one follows after this time, for the same place in the queue.
	waitLimit   = 15 * time.Second
	answerLimit = 5 * time.Second // for an answer that needs no waiting
	pauseLimit  = 5 * time.Second // between two requests while the server cannot be reached
)

// target describes the lock that an acquisition needs from the server.
type target struct {
	// request returns the request for the lock that waits that long.
	request func(long time.Duration, a acquisition) Request
	// question returns the request that also asks the holder for the document; nil if no holder is asked.
	question func(grace time.Duration, a acquisition) Request
	document string // its id
	// ifAvailable denies instead of waiting.
	ifAvailable bool
	// nested reports a deadlock. Otherwise this page holds nothing on the server while it waits, so a deadlock that the
	// server finds is an ordinary wait.
	nested bool
	// steal says that the lock of this machine was stolen.
	steal bool
}

// take asks the server until it grants, refuses or, without waiting, denies. If it fails, nothing of the acquisition
// stays on the server.
func (l *client) take(ctx context.Context, local lock.Grant, t target) (Reply, error) {
	a := &acquisition{ticket: lock.NewID(), local: local, passOn: t.steal}
	held, stop := whileHeld(ctx, local)
	defer stop()
	reply, err := l.ask(held, t, a)
	if err != nil && a.mayBeGranted {
		l.giveUp(ctx, a.ticket, giveUpLimit)
	}
	return reply, err
}

// ask is take, without the cleanup after a failed acquisition.
func (l *client) ask(ctx context.Context, t target, a *acquisition) (Reply, error) {
	backoff := lock.Backoff{MaxDelay: pauseLimit}
	pauses := backoff.Delays()
	for {
		asked, news := l.askedFor(t)
		if asked != nil {
			if reply, err := l.carry(ctx, asked, t, a); granted(reply, err) {
				return reply, nil
			}
		}
		began := time.Now()
		reply, err := l.await(ctx, news, t, a)
		waited := time.Since(began) > time.Second // the request waited on the server
		if waited {
			pauses = backoff.Delays()
		}
		switch {
		case granted(reply, err):
			return reply, nil
		case ctx.Err() != nil:
			return reply, context.Cause(ctx)
		case wait.Closed(news): // a question has arrived
			continue
		case final(err):
			return reply, err
		case passing(reply, err) && t.ifAvailable:
			return reply, l.unreachable(reply, err)
		case passing(reply, err):
		case reply.Error == "deadlock" && t.nested:
			return reply, &lock.Error{Code: lock.CodeDeadlock, Operation: lock.OpAcquire, Resource: l.resource,
				Detail: "it and others on other machines waited for each other: release what you hold"}
		case reply.Status != statusConflict && reply.Status != statusTimeout:
			return reply, refused(lock.OpAcquire, reply)
		case t.ifAvailable:
			return reply, l.denied(reply)
		case waited: // ask again at once
			continue
		}
		l.rest(ctx, news, max(pauses(), reply.RetryAfter))
	}
}

func granted(r Reply, err error) bool { return err == nil && r.Status == statusOK && r.Token > 0 }

// askedFor returns the question that a request must carry, if there is one, and a channel that is closed when one
// arrives.
func (l *client) askedFor(t target) (*question, <-chan struct{}) {
	if t.question == nil || t.ifAvailable {
		return nil, nil
	}
	return l.questions.take(t.document)
}

// final reports an error of this side, which no later answer of the server changes.
func final(err error) bool { return errors.As(err, new(*lock.Error)) }

// carry sends the request that asks the holder to hand over. The page that asked the question gets the answer, too.
func (l *client) carry(ctx context.Context, q *question, t target, a *acquisition) (Reply, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(q.ctx, func() { stop(context.Cause(q.ctx)) })()
	q.begun()
	reply, err := l.acquire(ctx, q.grace+acceptLimit+answerLimit, a, func() Request { return t.question(q.grace, *a) })
	q.answer <- answered{reply, err}
	return reply, err
}

// await sends a request that waits in the queue, until news arrives.
func (l *client) await(ctx context.Context, news <-chan struct{}, t target, a *acquisition) (Reply, error) {
	ctx, stop := until(ctx, news)
	defer stop()
	long := waitLimit
	if t.ifAvailable {
		long = 0
	}
	return l.acquire(ctx, long+answerLimit, a, func() Request { return t.request(long, *a) })
}

func (l *client) rest(ctx context.Context, news <-chan struct{}, pause time.Duration) {
	ctx, stop := until(ctx, news)
	defer stop()
	_ = wait.For(ctx, pause)
}

// until returns a context that also ends when the channel is closed.
func until(ctx context.Context, closed <-chan struct{}) (context.Context, func()) {
	ctx, stop := context.WithCancel(ctx)
	if closed != nil {
		go func() {
			select {
			case <-closed:
				stop()
			case <-ctx.Done():
			}
		}()
	}
	return ctx, stop
}

// whileHeld returns a context that also ends when the grant is lost.
func whileHeld(ctx context.Context, g lock.Grant) (context.Context, func()) {
	ctx, end := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-g.Lost():
			end(stolenHere())
		case <-ctx.Done():
		}
	}()
	return ctx, func() { end(nil) }
}

func (l *client) denied(r Reply) error {
	holder, where := r.HolderName, " holds it in another browser"
	if holder == "" {
		holder = "somebody"
	}
	if r.Mine {
		where = " holds it on the server, in a tab of this browser"
	}
	return &lock.Error{Code: lock.CodeDenied, Operation: lock.OpAcquire, Resource: l.resource, Detail: holder + where}
}

func (l *client) unreachable(r Reply, err error) error {
	detail := "no answer of the server; is the network there, and does the content security policy allow it (connect-src)?"
	if unsent(err) {
		detail = "the page gave no token for the server; make sure that server.token settles"
	}
	return &lock.Error{Code: lock.CodeTimeout, Operation: lock.OpAcquire, Resource: l.resource, Detail: detail, Err: unanswered(r, err)}
}

var errSilent = errors.New("the server does not answer")

// send waits for an answer within its limit; a network that loses everything returns none.
func (l *client) send(ctx context.Context, r Request) (Reply, error) {
	return l.sendFor(ctx, answerLimit, r)
}

func (l *client) sendFor(ctx context.Context, limit time.Duration, r Request) (Reply, error) {
	return l.server.send(ctx, limit, r)
}

// confirm renews a claim for the first time, for the lease that gets the record r. The lease counts its time from the
// beginning of this call, which is earlier than the server's beginning.
func (l *client) confirm(ctx context.Context, c claim, r lock.Record) (int64, error) {
	if ttl := r.ExpiresAt.Sub(r.AcquiredAt); c.ttl > 0 && ttl > c.ttl {
		return 0, &lock.Error{Code: lock.CodeInvalidArgument, Operation: lock.OpAcquire, Resource: l.resource,
			Detail: "ttlMs (" + millis(ttl) + ") must not be longer than the server keeps a lock (" + millis(c.ttl) + ")"}
	}
	reply, err := l.send(ctx, Request{Method: "PUT", Path: c.path, Token: c.token})
	switch {
	case passing(reply, err):
		return 0, l.unreachable(reply, err)
	case notAllowed(reply):
		return 0, refused(lock.OpAcquire, reply)
	case reply.Status != statusOK:
		return 0, &lock.Error{Code: lock.CodeDenied, Operation: lock.OpAcquire, Resource: l.resource,
			Detail: "another owner took it over at the same moment", Err: answer(reply)}
	}
	return c.token, nil
}

// renew renews a claim.
func (l *client) renew(ctx context.Context, c claim) error {
	reply, err := l.send(ctx, Request{Method: "PUT", Path: c.path, Token: c.token})
	switch {
	case passing(reply, err):
		return unanswered(reply, err)
	case reply.Status == statusOK:
		return nil
	case notAllowed(reply):
		return refused(lock.OpRenew, reply)
	case reply.Status == statusNotFound, reply.Status == statusForbidden, reply.Status == statusConflict:
		return &lock.Error{Code: lock.CodeLost, Operation: lock.OpRenew, Resource: l.resource,
			Detail: "the server gave the lock to another owner or let it expire", Err: answer(reply)}
	}
	return refused(lock.OpRenew, reply)
}

// giveBack releases a claim. A server that cannot be reached receives the release with the next request that it
// answers.
func (l *client) giveBack(ctx context.Context, c claim) error {
	err := l.release(ctx, c)
	if err != nil {
		l.endLater(c.ticket, c.ttl)
		err = errors.Join(errors.New("the server did not get the release, so the lock stays until it expires"), err)
	}
	return err
}

// end releases the claim of a term whose lock of this machine is local. If that lock was stolen, the release comes later, for the claim
// alone: on the server the stealer takes the claim over, before the waiters of other machines, unless it has given up.
func (l *client) end(ctx context.Context, t *term, local lock.Grant) error {
	switch {
	case wait.Closed(t.passed):
		return nil
	case wait.Closed(local.Lost()):
		time.AfterFunc(answerLimit, func() { _ = l.release(context.Background(), t.claim) }) // if it fails, the server lets the claim expire
		return nil
	}
	return l.giveBack(ctx, t.claim)
}

// release fails if it is unknown whether the server has released the claim.
func (l *client) release(ctx context.Context, c claim) error {
	reply, err := l.send(ctx, Request{Method: "DELETE", Path: c.path, Token: c.token})
	if passing(reply, err) || notAllowed(reply) {
		return unanswered(reply, err)
	}
	return nil
}
