package rooms

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// queue carries out the changes that come from this instance. Those of one room go in the order in which
// they came, and what has gathered while one transaction was under way goes into the next together:
// a thousand who come back at once would otherwise wait for a thousand commits.
type queue struct {
	store    Store
	now      func() time.Time
	limit    time.Duration // of one transaction with its repetitions
	conflict func()        // counts

	mu      sync.Mutex
	waiting map[string][]*job // by room; there is a worker for each key that is there
	workers sync.WaitGroup
}

const (
	// breath is the pause between two transactions of a room that has more to do. In it the other instances
	// get their turn, who would otherwise keep finding that this one was faster, and more jobs gather.
	breath = 5 * time.Millisecond
	// maxRetry bounds the pause before a transaction that met another one is tried again. It is short, so
	// that the one who lost is the one who wins next.
	maxRetry = 10 * time.Millisecond
)

type job struct {
	ctx     context.Context
	compute func(*txn) error
	done    chan struct{} // closed when the other two are set

	revision int64
	err      error
}

// change carries out a change of a room and returns the revision that holds it. When another change came
// between reading and committing, it is computed anew from what is there now. It fails with the
// function's own refusal, or with errUnavailable; after the latter the change may have been made, or may
// still be.
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
	for first := true; ; first = false {
		q.mu.Lock()
		jobs := q.waiting[id]
		if len(jobs) == 0 {
			delete(q.waiting, id)
			q.mu.Unlock()
			return
		}
		q.waiting[id] = nil
		q.mu.Unlock()
		for ; len(jobs) > 0; first = false {
			if !first {
				time.Sleep(breath)
			}
			done := q.commit(jobs)
			for _, j := range jobs[:done] {
				close(j.done)
			}
			jobs = jobs[done:]
		}
	}
}

// commit carries out as many of the jobs, from the first on, as one transaction holds, at least one, and
// returns how many.
func (q *queue) commit(jobs []*job) int {
	ctx, cancel := context.WithTimeout(context.Background(), q.limit)
	defer cancel()
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval = time.Millisecond
	pause.MaxInterval = maxRetry
	for {
		x := newTxn(ctx, q.store)
		n := gather(x, jobs)
		t, err := x.encode(q.now())
		if errors.Is(err, errFull) && n > 1 {
			jobs = jobs[:1] // which of them was too much shows when they go alone
			continue
		}
		if err != nil {
			return settle(jobs[:n], 0, known(err))
		}
		result, err := q.store.Commit(ctx, t)
		if err != nil {
			return settle(jobs[:n], 0, known(err))
		}
		if result.Held {
			return settle(jobs[:n], result.Revision, nil)
		}
		q.conflict()
		select {
		case <-time.After(pause.NextBackOff()):
		case <-ctx.Done():
			return settle(jobs[:n], 0, errUnavailable)
		}
	}
}

// gather computes jobs until the transaction is full, notes the error of those that fail, and returns how
// many it has computed.
func gather(x *txn, jobs []*job) int {
	for i, j := range jobs {
		if j.err = j.ctx.Err(); j.err != nil {
			continue // nobody waits for it any more
		}
		fits, err := x.try(j.compute)
		if !fits && i > 0 {
			return i
		}
		if !fits {
			err = errFull // alone, it is larger than a transaction
		}
		if err != nil {
			j.err = known(err)
		}
	}
	return len(jobs)
}

// settle notes the outcome of jobs that have not failed by themselves.
func settle(jobs []*job, revision int64, err error) int {
	for _, j := range jobs {
		if j.err == nil {
			j.revision, j.err = revision, err
		}
	}
	return len(jobs)
}

// known returns a refusal as it is; every other error is the store's, whose words are not for clients.
func known(err error) error {
	var refused *refusal
	if errors.As(err, &refused) {
		return refused
	}
	return errors.Join(errUnavailable, err)
}
