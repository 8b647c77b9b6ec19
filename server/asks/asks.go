// Package asks lets a client ask the holder of a document's lock to hand it over. If documents below the requested one are locked, it asks all
// their holders at once.
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
	"errors"
	"sync"
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

// Relay passes questions to holders and answers to askers.
type Relay struct {
	// Ended, if set, is called with the revision at which the end of a question about a document was recorded.
	Ended func(document string, revision int64)

	store  *kv.Store
	table  *locks.Table
	record func(document string, a Ask, ended Outcome) []kv.Op
}

// New returns a relay. record returns the operations that record an event: a new question if ended is empty, otherwise
// the end of a question. A nil record records nothing.
func New(store *kv.Store, table *locks.Table, record func(document string, a Ask, ended Outcome) []kv.Op) *Relay {
	if record == nil {
		record = func(string, Ask, Outcome) []kv.Op { return nil }
	}
	return &Relay{store: store, table: table, record: record}
}

// Ask asks the holders that block the request, and returns the lease after the handover. Each document that one of them holds gets one
// question. Ask fails with *[RefusedError], [ErrBusy], the errors of [locks.Table.Acquire], and [ErrTimeout] when one of the holders does not
// answer within grace. When ctx ends, the questions are withdrawn.
func (relay *Relay) Ask(ctx context.Context, r locks.Request, grace time.Duration) (locks.Lease, error) {
	for until := time.Now().Add(grace); ; {
		lease, err := relay.askHolder(ctx, r, time.Until(until))
		if !errors.Is(err, errMoved) {
			return lease, err
		}
	}
}

// askHolder is Ask. It fails with errMoved if another client gets the lock before the asker is in the queue.
func (relay *Relay) askHolder(ctx context.Context, r locks.Request, grace time.Duration) (locks.Lease, error) {
	in, err := relay.pose(ctx, r)
	if err != nil {
		return locks.Lease{}, err
	}
	if in.lease != nil { // also without a question, if the lock has just ended
		defer release(ctx, in.lease)
	}
	switch {
	case len(in.questions) > 0:
	case len(in.known) == 0:
		return relay.acquire(ctx, r, grace)
	default: // the holder's own leases
		r.Wait = grace
		return relay.table.Acquire(ctx, r)
	}
	lease, cause, err := relay.await(ctx, r, in, grace)
	if err == nil {
		relay.endAll(ctx, in, nil, "")
		return lease, nil
	}
	outcome, err := failure(ctx, cause, err)
	relay.endAll(ctx, in, cause, outcome)
	return locks.Lease{}, err
}

// await waits at the head of the queue until the holders pass the lock on, or a question ends. cause is errOver
// unless something else ended the waiting first: a holder's refusal, its silence, or the end of ctx.
func (relay *Relay) await(ctx context.Context, r locks.Request, in *inquiry, grace time.Duration) (lease locks.Lease, cause, err error) {
	asking, end := context.WithCancelCause(ctx)
	var followed sync.WaitGroup
	for _, q := range in.questions {
		followed.Go(func() {
			relay.follow(asking, func(cause error) { end(&answered{q.document, cause}) }, q, grace)
		})
	}
	r.First, r.Wait = true, grace+AcceptLimit
	announced := false
	r.Queued = func() {
		if announced {
			return // the request lost its place in the queue and got it back
		}
		announced = true
		if err := relay.announce(asking, r, in); err != nil {
			end(err)
		}
	}
	lease, err = relay.table.Acquire(asking, r)
	end(errOver)
	followed.Wait()
	return lease, context.Cause(asking), err
}

// answered is the cause with which one of the questions ends the waiting.
type answered struct {
	document string
	cause    error
}

func (a *answered) Error() string { return a.cause.Error() }
func (a *answered) Unwrap() error { return a.cause }

// failure returns how the questions ended without a lease, and the error for the asker. cause and err are those of await.
func failure(ctx context.Context, cause, err error) (Outcome, error) {
	var refused *RefusedError
	switch {
	case ctx.Err() != nil:
		return Cancelled, context.Cause(ctx)
	case errors.Is(cause, errMoved):
		return "", errMoved // nobody has received a question
	case errors.As(cause, &refused):
		return Refused, refused
	case errors.Is(cause, ErrTimeout), errors.Is(err, locks.ErrTimeout):
		return TimedOut, ErrTimeout
	}
	return Cancelled, err
}

// release ends the lease of a question, even after ctx has ended. If that fails, the lease ends by itself.
func release(ctx context.Context, lease *kv.Lease) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endLimit)
	defer cancel()
	_ = lease.Close(ctx)
}

// follow waits for the holder's answer. It ends the asker's waiting on a refusal or without an answer. A holder whose lock has ended need not
// answer any more: the asker may still wait for others.
func (relay *Relay) follow(ctx context.Context, end context.CancelCauseFunc, q question, grace time.Duration) {
	var accepted, replaced atomic.Bool // replaced: by a later question, whose answer is for its own asker
	silence := time.AfterFunc(grace, func() {
		if !replaced.Load() && relay.released(ctx, q) {
			return
		}
		// The store decides: an answer that it has may still be on its way to this server. The answer may also arrive while this
		// function runs, and then the time for it no longer counts.
		gone, err := relay.remove(ctx, q.document, q.ask, TimedOut, Ask.unanswered)
		for err != nil && wait.For(ctx, againAfter) == nil {
			gone, err = relay.remove(ctx, q.document, q.ask, TimedOut, Ask.unanswered)
		}
		if gone && !accepted.Load() {
			end(ErrTimeout)
		}
	})
	defer silence.Stop()
	saving := time.AfterFunc(grace+AcceptLimit, func() {
		if !relay.released(ctx, q) {
			end(ErrTimeout)
		}
	})
	defer saving.Stop()
	err := relay.store.Watch(ctx, prefix+q.document, q.revision, func(changes []kv.Change) error {
		for _, c := range changes {
			if c.Key != prefix+q.document || replaced.Load() {
				continue
			}
			a, ok := decode(c.Entry)
			switch {
			case c.Deleted || !ok:
				return ErrTimeout
			case a.ID != q.ask.ID:
				replaced.Store(true)
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

// endAll removes the questions, even after ctx has ended. If one of them ended the waiting, the others are cancelled. If a removal fails, the key
// ends with its lease, and a question about a former lock counts as closed.
func (relay *Relay) endAll(ctx context.Context, in *inquiry, cause error, outcome Outcome) {
	var by *answered
	errors.As(cause, &by)
	var all sync.WaitGroup
	for _, q := range in.questions {
		outcome := outcome
		if by != nil && by.document != q.document {
			outcome = Cancelled
		}
		all.Go(func() {
			_, _ = relay.remove(context.WithoutCancel(ctx), q.document, q.ask, outcome, func(Ask) bool { return true })
		})
	}
	all.Wait()
}

// remove removes a question if may approves of what the holder answered so far. It reports whether the question is gone.
func (relay *Relay) remove(ctx context.Context, document string, a Ask, outcome Outcome, may func(Ask) bool) (gone bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, endLimit)
	defer cancel()
	for {
		e, _, err := relay.store.Get(ctx, prefix+document)
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
			ops = append(ops, relay.record(document, a, outcome)...)
		}
		result, err := relay.store.Commit(ctx, kv.Txn{If: []kv.Cond{kv.Unchanged(e)}, Then: ops})
		if err == nil && result.Held && outcome != "" && relay.Ended != nil {
			relay.Ended(document, result.Revision)
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
func (relay *Relay) Accept(ctx context.Context, by Answer) error {
	return relay.answer(ctx, by, func(a *Ask) { a.Accepted = true })
}

// Refuse says that the holder keeps the lock, with a reason. Its errors are those of Accept.
func (relay *Relay) Refuse(ctx context.Context, by Answer, reason string, busy bool) error {
	return relay.answer(ctx, by, func(a *Ask) { a.Refused, a.Reason, a.Busy = true, reason, busy })
}

func (relay *Relay) answer(ctx context.Context, by Answer, change func(*Ask)) error {
	for {
		fence, token, err := relay.table.Own(ctx, locks.Document(by.Document), by.Holder, by.Token)
		if err != nil {
			return err
		}
		e, _, err := relay.store.Get(ctx, prefix+by.Document)
		if err != nil {
			return err
		}
		a, ok := decode(e)
		if !e.Found() || !ok || a.Token != token || a.Refused || by.Ask != "" && by.Ask != a.ID {
			return ErrNotAsked
		}
		change(&a)
		// The key keeps its lease.
		result, err := relay.store.Commit(ctx, kv.Txn{If: []kv.Cond{fence, kv.Unchanged(e)}, Then: []kv.Op{kv.PutKept(e.Key, a.encode())}})
		if err != nil || result.Held {
			return err
		}
	}
}
