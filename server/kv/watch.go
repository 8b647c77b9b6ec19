package kv

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Change is one change of one key.
type Change struct {
	// Entry is the key after the change. After a deletion it has only the key and, as Modified, the revision of the
	// deletion.
	Entry
	Deleted bool
}

// New reports whether the change created the key.
func (c Change) New() bool { return !c.Deleted && c.Created == c.Modified }

// Watch calls f with the changes of all keys that begin with prefix. Each change arrives exactly once and in order of
// revisions, starting with the first revision after the given one. One call contains all changes of a revision, and
// may contain several revisions. After a lost connection or leader, Watch resumes where it was.
//
// Watch returns ctx's error when ctx ends, and f's error when f fails. It returns [ErrCompacted] when the next
// changes have been compacted: the caller then reads the present state and watches from its revision.
func (s *Store) Watch(ctx context.Context, prefix string, after int64, f func([]Change) error) error {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval = 20 * time.Millisecond
	pause.MaxInterval = time.Second
	for {
		last, err := s.watchOnce(ctx, prefix, after, f)
		if last > after {
			after = last
			pause.Reset()
		}
		var own callbackError
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &own):
			return own.error
		case errors.Is(err, ErrCompacted):
			return err
		}
		select {
		case <-time.After(pause.NextBackOff()):
		case <-ctx.Done():
		}
	}
}

// callbackError marks an error of the callback, as opposed to one of the store.
type callbackError struct{ error }

// watchOnce watches until something fails and returns the last delivered revision.
func (s *Store) watchOnce(ctx context.Context, prefix string, after int64, f func([]Change) error) (int64, error) {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	responses := s.client.Watch(ctx, prefix, clientv3.WithPrefix(), clientv3.WithRev(after+1))
	for response := range responses {
		if err := response.Err(); err != nil {
			return after, plainError(err)
		}
		if len(response.Events) == 0 {
			continue
		}
		changes := make([]Change, len(response.Events))
		for i, event := range response.Events {
			changes[i] = Change{entry(event.Kv), event.Type == clientv3.EventTypeDelete}
		}
		if err := f(changes); err != nil {
			return after, callbackError{err}
		}
		after = changes[len(changes)-1].Modified
	}
	return after, ErrUnavailable
}
