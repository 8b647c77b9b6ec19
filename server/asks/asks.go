// Package asks lets a client ask the holder of a document's lock to hand it over.
//
// # In the store
//
// asks/<document> is the question to the holder of that document's lock. There is at most one at a time. The holder
// answers by changing the key: accepted, so that it has time to save, or refused. Both the asker and the holder see
// the key, whichever servers they use.
//
// The holder receives the question only when the asker is first in the queue. So when the holder releases the lock or
// the lock ends, the asker gets it, and no other client comes in between.
package asks

import (
	"context"
	"crypto/rand"
	"errors"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/internal/wait"
	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/locks"
)

const prefix = "asks/"

// AcceptLimit is how long a holder that accepted may take to save and release.
const AcceptLimit = 15 * time.Second

const (
	// askTTL is how long a question outlives the server of its asker.
	askTTL = 10 * time.Second
	// againAfter is the pause before a look at a question after the store has failed.
	againAfter = 100 * time.Millisecond
	// endLimit limits the time to remove a question.
	endLimit = 5 * time.Second
)

var (
	// ErrBusy means that another client has already asked.
	ErrBusy = errors.New("somebody else has asked for this lock already")
	// ErrTimeout means that the holder did not answer or release in time.
	ErrTimeout = errors.New("the holder did not pass the lock on in time")
	// ErrNotAsked means that no client asks for the lock now.
	ErrNotAsked = errors.New("nobody asks for this lock now")

	errOver  = errors.New("the question is over")
	errMoved = errors.New("the lock has another holder")
)

// RefusedError is the answer of a holder that keeps the lock.
type RefusedError struct {
	Reason string
	Busy   bool // the holder hands the lock over to another client
}

func (e *RefusedError) Error() string { return "the holder keeps the lock: " + e.Reason }

// Outcome says why a question ended without a grant.
type Outcome string

// The outcomes.
const (
	Refused   Outcome = "refused"
	TimedOut  Outcome = "timeout"
	Cancelled Outcome = "cancelled" // the asker left
)

// Desk passes questions to holders and answers to askers.
type Desk struct {
	// Ended, if set, is called with the revision at which the end of a question about a document was recorded.
	Ended func(document string, revision int64)

	store  *kv.Store
	table  *locks.Table
	record func(document string, a Ask, ended Outcome) []kv.Op
}

// New returns a desk. record returns the operations that record an event: a new question if ended is empty, otherwise
// the end of a question. A nil record records nothing.
func New(store *kv.Store, table *locks.Table, record func(document string, a Ask, ended Outcome) []kv.Op) *Desk {
	if record == nil {
		record = func(string, Ask, Outcome) []kv.Op { return nil }
	}
	return &Desk{store: store, table: table, record: record}
}

// Ask asks the holder that blocks the request, and returns the lease after the handover. It fails with
// *[RefusedError], [ErrBusy], the errors of [locks.Table.Acquire], and [ErrTimeout] when the holder does not answer
// within grace. When ctx ends, the question is withdrawn.
func (d *Desk) Ask(ctx context.Context, r locks.Request, grace time.Duration) (locks.Lease, error) {
	for until := time.Now().Add(grace); ; {
		lease, err := d.askHolder(ctx, r, time.Until(until))
		if !errors.Is(err, errMoved) {
			return lease, err
		}
	}
}

// askHolder is Ask. It fails with errMoved if another client gets the lock before the asker is in the queue.
func (d *Desk) askHolder(ctx context.Context, r locks.Request, grace time.Duration) (locks.Lease, error) {
	q, needed, err := d.pose(ctx, r)
	if err != nil {
		return locks.Lease{}, err
	}
	if !needed && q.held.Token == 0 {
		return d.acquire(ctx, r, grace)
	}
	if !needed {
		r.Wait = grace
		return d.table.Acquire(ctx, r)
	}
	defer release(ctx, q.lease)
	lease, cause, err := d.await(ctx, r, q, grace)
	if err == nil {
		d.end(ctx, q.document, q.ask, "")
		return lease, nil
	}
	outcome, err := failure(ctx, cause, err)
	d.end(ctx, q.document, q.ask, outcome)
	return locks.Lease{}, err
}

// question is a question in the store.
type question struct {
	document string
	ask      Ask
	held     locks.Lease // the requested lock
	revision int64       // of the question
	lease    *kv.Lease   // of the key
}

// pose stores a question to the holder that blocks the request. None is needed if no other client holds the lock.
func (d *Desk) pose(ctx context.Context, r locks.Request) (q question, needed bool, err error) {
	q.ask = Ask{ID: rand.Text()[:16], By: r.Holder, Ticket: r.Ticket, At: time.Now().UnixMilli()}
	for q.revision == 0 {
		if q.held, _, err = d.table.At(ctx, r.Paths[0]); err != nil {
			return q, false, err
		}
		if q.held.Token == 0 || q.held.Holder.ID == r.Holder.ID {
			return q, false, nil
		}
		q.document, q.ask.Token = documentOf(q.held, r), q.held.Token
		if err = d.put(ctx, &q); err != nil {
			return q, false, err
		}
	}
	return q, true, nil
}

// await waits at the head of the queue until the holder passes the lock on, or the question ends. cause is errOver
// unless something else ended the waiting first: the holder's refusal, its silence, or the end of ctx.
func (d *Desk) await(ctx context.Context, r locks.Request, q question, grace time.Duration) (lease locks.Lease, cause, err error) {
	asking, end := context.WithCancelCause(ctx)
	followed := make(chan struct{})
	go func() {
		defer close(followed)
		d.follow(asking, end, q, grace)
	}()
	r.First, r.Wait = true, grace+AcceptLimit
	announced := false
	r.Queued = func() {
		if announced {
			return // the request lost its place in the queue and got it back
		}
		announced = true
		told, err := d.announce(asking, q)
		if err == nil && !told {
			err = d.moved(asking, r, q)
		}
		if err != nil {
			end(err)
		}
	}
	lease, err = d.table.Acquire(asking, r)
	end(errOver)
	<-followed
	return lease, context.Cause(asking), err
}

// failure returns how a question ended without a lease, and the error for the asker. cause and err are those of await.
func failure(ctx context.Context, cause, err error) (Outcome, error) {
	switch {
	case ctx.Err() != nil:
		return Cancelled, context.Cause(ctx)
	case errors.Is(cause, errMoved):
		return "", errMoved // nobody has received the question
	case errors.As(cause, new(*RefusedError)):
		return Refused, cause
	case errors.Is(cause, ErrTimeout), errors.Is(err, locks.ErrTimeout):
		return TimedOut, ErrTimeout
	}
	return Cancelled, err
}

// documentOf returns the document whose holder is asked: the requested one, or the one of another lock that is in the way.
func documentOf(held locks.Lease, r locks.Request) string {
	paths := append(held.Paths, r.Paths...)
	if held.Records(r.Paths[0]) {
		paths = r.Paths
	}
	for _, p := range paths {
		if document, ok := p.Document(); ok {
			return document
		}
	}
	return ""
}

// put stores a question and sets its revision, unless that of another asker is open for the same lock. The revision stays 0 if something
// changed meanwhile. The question ends with its lease in case this server dies.
func (d *Desk) put(ctx context.Context, q *question) error {
	key := prefix + q.document
	old, _, err := d.store.Get(ctx, key)
	if err != nil {
		return err
	}
	free, ops := kv.Absent(key), []kv.Op(nil)
	if old.Found() {
		before, ok := decode(old)
		switch {
		case ok && before.Refused: // its asker finds it gone
			ops = d.record(q.document, before, Refused)
		case ok && before.Token == q.ask.Token && !q.ask.repeats(before):
			return ErrBusy
		case ok && before.Token == q.ask.Token:
			ops = d.record(q.document, before, Cancelled)
		}
		free = kv.Unchanged(old)
	}
	lease, err := d.store.Lease(ctx, askTTL)
	if err != nil {
		return err
	}
	ops = append(ops, kv.PutBound(key, q.ask.encode(), lease))
	result, err := d.store.Commit(ctx, kv.Txn{If: []kv.Cond{free, q.held.Stands()}, Then: ops})
	if err != nil || !result.Held {
		release(ctx, lease)
		return err
	}
	q.revision, q.lease = result.Revision, lease
	return nil
}

// release ends the lease of a question, even after ctx has ended. If that fails, the lease ends by itself.
func release(ctx context.Context, lease *kv.Lease) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endLimit)
	defer cancel()
	_ = lease.Close(ctx)
}

// follow waits for the holder's answer. It ends the asker's waiting on a refusal or without an answer.
func (d *Desk) follow(ctx context.Context, end context.CancelCauseFunc, q question, grace time.Duration) {
	var accepted atomic.Bool
	silence := time.AfterFunc(grace, func() {
		// The store decides: an answer that it has may still be on its way to this server. The answer may also arrive while this
		// function runs, and then the time for it no longer counts.
		gone, err := d.remove(ctx, q.document, q.ask, TimedOut, Ask.unanswered)
		for err != nil && wait.For(ctx, againAfter) == nil {
			gone, err = d.remove(ctx, q.document, q.ask, TimedOut, Ask.unanswered)
		}
		if gone && !accepted.Load() {
			end(ErrTimeout)
		}
	})
	defer silence.Stop()
	saving := time.AfterFunc(grace+AcceptLimit, func() { end(ErrTimeout) })
	defer saving.Stop()
	replaced := false // by a later question, whose answer is for its own asker
	err := d.store.Watch(ctx, prefix+q.document, q.revision, func(changes []kv.Change) error {
		for _, c := range changes {
			if c.Key != prefix+q.document || replaced {
				continue
			}
			a, ok := decode(c.Entry)
			switch {
			case c.Deleted || !ok:
				return ErrTimeout
			case a.ID != q.ask.ID:
				replaced = true
			case a.Refused:
				return &RefusedError{a.Reason, a.Busy}
			case a.Accepted:
				accepted.Store(true)
				silence.Stop()
				saving.Reset(AcceptLimit)
			}
		}
		return nil
	})
	if err != nil && ctx.Err() == nil {
		end(err)
	}
}

// end removes a question, even after ctx has ended. If that fails, the key ends with its lease, and a question about a former lock
// counts as closed.
func (d *Desk) end(ctx context.Context, document string, a Ask, outcome Outcome) {
	_, _ = d.remove(context.WithoutCancel(ctx), document, a, outcome, func(Ask) bool { return true })
}

// remove removes a question if may approves of what the holder answered so far. It reports whether the question is gone.
func (d *Desk) remove(ctx context.Context, document string, a Ask, outcome Outcome, may func(Ask) bool) (gone bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, endLimit)
	defer cancel()
	for {
		e, _, err := d.store.Get(ctx, prefix+document)
		if err != nil {
			return false, err
		}
		now, ok := decode(e)
		switch {
		case !e.Found() || !ok || now.ID != a.ID:
			return true, nil
		case !may(now):
			return false, nil
		}
		ops := []kv.Op{kv.Delete(prefix + document)}
		if outcome != "" {
			ops = append(ops, d.record(document, a, outcome)...)
		}
		result, err := d.store.Commit(ctx, kv.Txn{If: []kv.Cond{kv.Unchanged(e)}, Then: ops})
		if err == nil && result.Held && outcome != "" && d.Ended != nil {
			d.Ended(document, result.Revision)
		}
		if err != nil || result.Held {
			return result.Held, err
		}
	}
}

// Answer identifies the holder that answers and the question.
type Answer struct {
	Document, Holder string
	Token            int64  // of the holder's lock; 0 means its current lock
	Ask              string // the id of the question; "" means the open question
}

// Accept says that the holder will hand the lock over once it has saved. It fails with [ErrNotAsked] and the errors
// of [locks.Table.RenewAt].
func (d *Desk) Accept(ctx context.Context, by Answer) error {
	return d.answer(ctx, by, func(a *Ask) { a.Accepted = true })
}

// Refuse says that the holder keeps the lock, with a reason. Its errors are those of Accept.
func (d *Desk) Refuse(ctx context.Context, by Answer, reason string, busy bool) error {
	return d.answer(ctx, by, func(a *Ask) { a.Refused, a.Reason, a.Busy = true, reason, busy })
}

func (d *Desk) answer(ctx context.Context, by Answer, change func(*Ask)) error {
	for {
		fence, token, err := d.table.Own(ctx, locks.Document(by.Document), by.Holder, by.Token)
		if err != nil {
			return err
		}
		e, _, err := d.store.Get(ctx, prefix+by.Document)
		if err != nil {
			return err
		}
		a, ok := decode(e)
		if !e.Found() || !ok || a.Token != token || a.Refused || by.Ask != "" && by.Ask != a.ID {
			return ErrNotAsked
		}
		change(&a)
		// The key keeps its lease.
		result, err := d.store.Commit(ctx, kv.Txn{If: []kv.Cond{fence, kv.Unchanged(e)}, Then: []kv.Op{kv.PutKept(e.Key, a.encode())}})
		if err != nil || result.Held {
			return err
		}
	}
}
