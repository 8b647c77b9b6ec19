package simulation

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/wait"
	"github.com/holdfast-dev/holdfast/lock"
)

var errStorage = errors.New("the storage fails")

// storageFaults describe how the files of an origin currently behave.
type storageFaults struct {
	dice *dice

	mu   sync.Mutex
	rate float64 // the share of calls that fail
	slow time.Duration
	last time.Time // the time of the last failed or slow call
}

func (f *storageFaults) set(rate float64, slow time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rate, f.slow = rate, slow
}

// next decides how a call ends: before it has any effect, after its effect, or well.
func (f *storageFaults) next() (takes time.Duration, before, after error) {
	f.mu.Lock()
	rate, slow := f.rate, f.slow
	f.mu.Unlock()
	takes = f.dice.between(50*time.Microsecond, 3*time.Millisecond)
	if slow > 0 && f.dice.chance(0.3) {
		takes = f.dice.between(3*time.Millisecond, slow)
	}
	if f.dice.chance(rate) {
		before = errStorage
	} else if f.dice.chance(rate / 2) {
		after = errStorage
	}
	if before != nil || after != nil || takes > time.Second {
		f.mu.Lock()
		f.last = time.Now()
		f.mu.Unlock()
	}
	return takes, before, after
}

// failedSince reports whether a call has failed or was slow since a moment.
func (f *storageFaults) failedSince(t time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last.After(t)
}

// records are a tab's access to the records of its origin: its [lock.Records].
type records struct {
	tab   *tab
	table *leaseTable
}

// do runs one call on the file. A call that has begun is finished, even after ctx ends.
func (r *records) do(ctx context.Context, call func() error) error {
	if err := r.tab.step(); err != nil {
		return err
	}
	takes, before, after := r.tab.at.faults.next()
	if err := wait.For(ctx, takes); err != nil {
		return err
	}
	if err := r.tab.awake(); err != nil {
		return err
	}
	if before != nil {
		return before
	}
	err := call()
	if gone := r.tab.step(); gone != nil {
		return gone
	}
	return errors.Join(err, after)
}

// Claim implements [lock.Records].
func (r *records) Claim(ctx context.Context, rec lock.Record, stolen bool) (token int64, err error) {
	err = r.do(ctx, func() error {
		token = r.table.claim(r.tab.name, rec, r.tab.at.clock.now().Wall, stolen)
		return nil
	})
	return token, err
}

// Renew implements [lock.Records].
func (r *records) Renew(ctx context.Context, rec lock.Record) error {
	return r.do(ctx, func() error { return r.table.renew(r.tab.name, rec) })
}

// Read implements [lock.Records].
func (r *records) Read(ctx context.Context, _ string) (rec lock.Record, ok bool, err error) {
	err = r.do(ctx, func() error {
		rec, ok = r.table.read()
		return nil
	})
	return rec, ok, err
}

// Remove implements [lock.Records].
func (r *records) Remove(ctx context.Context, rec lock.Record) error {
	return r.do(ctx, func() error {
		r.table.remove(r.tab.name, rec.LeaseID)
		return nil
	})
}
