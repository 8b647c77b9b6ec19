package rooms

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/holdfast-dev/holdfast/server/kv"
)

// queue carries out the changes that come from this instance. The changes of one room run in the order of their
// arrival. Changes that arrive during a transaction share the next one. Otherwise a thousand returning participants
// would wait for a thousand commits.
type queue struct {
	store    Store
	now      func() time.Time
	limit    time.Duration // limits one transaction with its retries
	conflict func()        // counts a conflict

	mu      sync.Mutex
	waiting map[string][]*job // by room; each key has a running worker
	large   int               // workers whose room is large
	workers sync.WaitGroup
}

const (
	// commitPause is the pause between two transactions of a room that has more jobs. It gives other instances a chance to
	// commit, and lets more jobs gather.
	commitPause = 5 * time.Millisecond
	// maxRetry bounds the pause before a retry after a conflict. It is short, so that the instance that lost usually
	// commits next.
	maxRetry = 10 * time.Millisecond
	// sendRate is the number of bytes a second that the states of all rooms may send to their participants, and maxRest the longest pause
	// for that. Otherwise a few participants of rooms with hundreds of others could keep the whole server busy.
	sendRate = 256 << 20
	maxRest  = 2 * time.Second
)

// rest pauses after transactions whose states have so many bytes for all participants together. A room whose states need a pause is large
// from then on. The large rooms that change now share the rate. A room with small states needs no pause, whatever the others do.
func (q *queue) rest(sentBytes int, large *bool) {
	pause := time.Duration(sentBytes) * time.Second / sendRate
	if pause < commitPause {
		return
	}
	q.mu.Lock()
	if !*large {
		*large = true
		q.large++
	}
	rooms := q.large
	q.mu.Unlock()
	time.Sleep(min(pause*time.Duration(rooms), maxRest))
}

type job struct {
	ctx     context.Context
	compute func(*txn) error
	done    chan struct{} // closed when revision and err are set

	revision int64
	err      error
}

// change carries out a change of a room and returns the revision that contains it. If another change comes between
// reading and committing, change computes it again from the new state. It fails with the function's own refusal or
// with errUnavailable. After errUnavailable the change may have been made, or may still be made.
func (q *queue) change(ctx context.Context, id string, compute func(*txn) error) (int64, error) {
	j := &job{ctx: ctx, compute: compute, done: make(chan struct{})}
	q.mu.Lock()
	if _, busy := q.waiting[id]; !busy {
		q.workers.Go(func() { q.work(id) })
	}
	q.waiting[id] = append(q.waiting[id], j)
	q.mu.Unlock()
	select {
	case <-j.done:
		return j.revision, j.err
	case <-ctx.Done():
		return 0, errUnavailable
	}
}

// work carries out the jobs of a room until none is left.
func (q *queue) work(id string) {
	large := false
	for first := true; ; first = false {
		q.mu.Lock()
		jobs := q.waiting[id]
		if len(jobs) == 0 {
			delete(q.waiting, id)
			if large {
				q.large--
			}
			q.mu.Unlock()
			return
		}
		q.waiting[id] = nil
		q.mu.Unlock()
		all := 0
		for ; len(jobs) > 0; first = false {
			if !first {
				time.Sleep(commitPause)
			}
			done, sentBytes := q.commit(jobs)
			for _, j := range jobs[:done] {
				close(j.done)
			}
			jobs = jobs[done:]
			all += sentBytes
		}
		q.rest(all, &large)
	}
}

// commit carries out the first jobs, as many as one transaction holds but at least one. It returns their number, and
// the bytes of the new states for all participants.
func (q *queue) commit(jobs []*job) (done, sentBytes int) {
	ctx, cancel := context.WithTimeout(context.Background(), q.limit)
	defer cancel()
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval = time.Millisecond
	pause.MaxInterval = maxRetry
	for {
		x := newTxn(ctx, q.store)
		n := gather(x, jobs)
		t, err := x.encode(q.now())
		var result kv.Result
		if err == nil {
			result, err = q.store.Commit(ctx, t)
		}
		if errors.Is(err, kv.ErrTooLarge) {
			err = errFull // each room is small enough, and all of them together are not
		}
		if errors.Is(err, errFull) && n > 1 {
			jobs = jobs[:1] // each job alone shows which one is too large
			continue
		}
		if err != nil {
			return finish(jobs[:n], 0, known(err)), 0
		}
		if result.Held {
			return finish(jobs[:n], result.Revision, nil), x.sentBytes
		}
		q.conflict()
		select {
		case <-time.After(pause.NextBackOff()):
		case <-ctx.Done():
			return finish(jobs[:n], 0, errUnavailable), 0
		}
	}
}

// gather computes jobs until the transaction is full and stores the error of each failed job. It returns the number
// of computed jobs.
func gather(x *txn, jobs []*job) int {
	for i, j := range jobs {
		if j.err = j.ctx.Err(); j.err != nil {
			continue // the caller has stopped waiting
		}
		fits, err := x.try(j.compute)
		if !fits && i > 0 {
			return i
		}
		if !fits {
			err = errFull // this job alone exceeds a transaction
		}
		if err != nil {
			j.err = known(err)
		}
	}
	return len(jobs)
}

// finish stores the outcome in every job that has no error of its own.
func finish(jobs []*job, revision int64, err error) int {
	for _, j := range jobs {
		if j.err == nil {
			j.revision, j.err = revision, err
		}
	}
	return len(jobs)
}

// known returns a refusal unchanged. Any other error comes from the store and its text must not reach clients.
func known(err error) error {
	var refused *refusal
	if errors.As(err, &refused) {
		return refused
	}
	return errors.Join(errUnavailable, err)
}
