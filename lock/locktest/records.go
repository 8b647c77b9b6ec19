package locktest

import (
	"context"
	"sync"

	"github.com/holdfast-dev/holdfast/lock"
)

// Records are [lock.Records] in memory, shared by all users of the same value. The hooks, if set, fail a call before
// anything is written.
type Records struct {
	mu     sync.Mutex
	record *lock.Record
	token  int64
	open   chan struct{} // not nil while a process has the file open

	OnClaim, OnRenew, OnRemove func(lock.Record) error
}

// Open keeps the file open until end is called, like a process that is suspended during a step over the file: every
// call waits, for as long as its context lasts.
func (r *Records) Open() (end func()) {
	open := make(chan struct{})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open = open
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.open = nil
		close(open)
	}
}

// begin waits until no process has the file open.
func (r *Records) begin(ctx context.Context) error {
	r.mu.Lock()
	open := r.open
	r.mu.Unlock()
	if open == nil {
		return nil
	}
	select {
	case <-open:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Claim writes the record under the next token after that of rec.
func (r *Records) Claim(ctx context.Context, rec lock.Record, _ bool) (int64, error) {
	if err := r.begin(ctx); err != nil {
		return 0, err
	}
	if err := call(r.OnClaim, rec); err != nil {
		return 0, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.token = max(r.token, rec.Token) + 1
	rec.Token = r.token
	r.record = &rec
	return r.token, nil
}

// Renew writes the record again, if it still belongs to the lease.
func (r *Records) Renew(ctx context.Context, rec lock.Record) error {
	if err := r.begin(ctx); err != nil {
		return err
	}
	if err := call(r.OnRenew, rec); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.record == nil || r.record.LeaseID != rec.LeaseID {
		return lock.ErrLost
	}
	r.record = &rec
	return nil
}

// Remove removes the record of the lease.
func (r *Records) Remove(ctx context.Context, rec lock.Record) error {
	if err := r.begin(ctx); err != nil {
		return err
	}
	if err := call(r.OnRemove, rec); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.record != nil && r.record.LeaseID == rec.LeaseID {
		r.record = nil
	}
	return nil
}

// Read implements [lock.Records].
func (r *Records) Read(ctx context.Context, resource string) (lock.Record, bool, error) {
	if err := r.begin(ctx); err != nil {
		return lock.Record{}, false, err
	}
	rec, ok := r.Present()
	return rec, ok && rec.Resource == resource, nil
}

// Present returns the record that others would read.
func (r *Records) Present() (lock.Record, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.record == nil {
		return lock.Record{}, false
	}
	return *r.record, true
}

func call(hook func(lock.Record) error, rec lock.Record) error {
	if hook == nil {
		return nil
	}
	return hook(rec)
}
