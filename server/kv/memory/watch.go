package memory

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// watcher is the [clientv3.Watcher] of a connection.
type watcher struct{ *connection }

// Watch implements [clientv3.Watcher]. Each delivery takes as long as a request on the link. If the link fails, the
// channel is closed, as when a connection breaks.
func (w watcher) Watch(ctx context.Context, key string, options ...clientv3.OpOption) clientv3.WatchChan {
	op := clientv3.OpGet(key, options...)
	responses := make(chan clientv3.WatchResponse)
	go func() {
		defer close(responses)
		for next := op.Rev(); ; {
			events, revision, changed := w.store.since(next, op.KeyBytes(), op.RangeBytes())
			if len(events) > 0 {
				before, after := w.link(ctx, "watch")
				if before != nil || after != nil {
					return
				}
				select {
				case responses <- clientv3.WatchResponse{Events: events}:
				case <-ctx.Done():
					return
				case <-w.life.Done():
					return
				}
			}
			next = revision + 1
			select {
			case <-changed:
			case <-ctx.Done():
				return
			case <-w.life.Done():
				return
			}
		}
	}()
	return responses
}

// since returns the events from a revision on, the present revision, and a channel that closes at the next revision.
func (s *Store) since(revision int64, key, end []byte) (events []*clientv3.Event, now int64, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := len(s.history)
	for first > 0 && s.history[first-1].Kv.ModRevision >= revision {
		first--
	}
	for _, e := range s.history[first:] {
		if covers(key, end, e.Kv.Key) {
			events = append(events, e)
		}
	}
	return events, s.revision, s.changed
}

// RequestProgress implements [clientv3.Watcher].
func (w watcher) RequestProgress(context.Context) error { return nil }

// Close implements [clientv3.Watcher].
func (w watcher) Close() error { return nil }
