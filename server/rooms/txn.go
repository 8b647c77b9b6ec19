package rooms

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/holdfast-dev/holdfast/server/kv"
)

// Store is what rooms need of the store; [kv.Store] is one.
type Store interface {
	Get(ctx context.Context, key string) (kv.Entry, int64, error)
	Range(ctx context.Context, prefix string) ([]kv.Entry, int64, error)
	Commit(ctx context.Context, txn kv.Txn) (kv.Result, error)
	Watch(ctx context.Context, prefix string, after int64, f func([]kv.Change) error) error
}

// txn gathers what one change reads and writes. Its commit fails when anything it read has changed since.
type txn struct {
	ctx    context.Context
	store  Store
	reads  map[string]kv.Entry
	writes map[string][]byte // nil deletes
}

// get reads a key, as this transaction has left it. A key that is not there is nil.
func (x *txn) get(key string) ([]byte, error) {
	if value, ok := x.writes[key]; ok {
		return value, nil
	}
	entry, ok := x.reads[key]
	if !ok {
		var err error
		if entry, _, err = x.store.Get(x.ctx, key); err != nil {
			return nil, err
		}
		x.reads[key] = entry
	}
	return entry.Value, nil
}

func (x *txn) put(key string, value []byte) { x.writes[key] = value }

func (x *txn) delete(key string) { x.writes[key] = nil }

func (x *txn) commit() (kv.Result, error) {
	var t kv.Txn
	for key, entry := range x.reads {
		if entry.Found() {
			t.If = append(t.If, kv.Unchanged(entry))
		} else {
			t.If = append(t.If, kv.Absent(key))
		}
	}
	for key, value := range x.writes {
		if value == nil {
			t.Then = append(t.Then, kv.Delete(key))
		} else {
			t.Then = append(t.Then, kv.Put(key, value))
		}
	}
	return x.store.Commit(x.ctx, t)
}

// change carries out a change in one transaction and returns the revision that holds it. When another
// change came between reading and committing, it is computed anew from what is there now. It fails with
// the function's own error, or with errUnavailable; after the latter the change may have been made.
func change(ctx context.Context, store Store, conflict func(), compute func(*txn) error) (int64, error) {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval = time.Millisecond
	pause.MaxInterval = 50 * time.Millisecond
	for {
		x := &txn{ctx: ctx, store: store, reads: map[string]kv.Entry{}, writes: map[string][]byte{}}
		if err := compute(x); err != nil {
			return 0, known(err)
		}
		result, err := x.commit()
		if err != nil {
			return 0, known(err)
		}
		if result.Held {
			return result.Revision, nil
		}
		conflict()
		select {
		case <-time.After(pause.NextBackOff()):
		case <-ctx.Done():
			return 0, errUnavailable
		}
	}
}

// known returns a refusal as it is; every other error is the store's, whose words are not for clients.
func known(err error) error {
	var refused *refusal
	if errors.As(err, &refused) {
		return refused
	}
	return errors.Join(errUnavailable, err)
}
