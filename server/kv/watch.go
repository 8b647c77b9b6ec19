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
	// Entry is the key after the change. Of a deleted key it has the name, and the revision of the deletion as
	// Modified.
	Entry
	Deleted bool
}

// New reports whether the change created the key.
func (c Change) New() bool { return !c.Deleted && c.Created == c.Modified }

// Watch calls f with the changes of all keys that begin with prefix, each change exactly once and in the order of
// revisions, beginning with the first revision after the one given. All changes of one revision come in one call; one
// call may bring several revisions. It rides out lost connections and leaders by resuming where it was.
//
// It returns when ctx ends, with its error; when f fails, with f's error; and with [ErrCompacted] when the changes
// that come next have been compacted away: the caller reads the present state then and watches from its revision.
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

// callbackError tells an error of the callback from one of the store.
type callbackError struct{ error }

// watchOnce watches until something fails and returns the last revision it delivered.
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
