package memory

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

var errUnknownLease = errors.New("etcdserver: requested lease not found")

// lease ends after its TTL unless it is kept alive.
type lease struct {
	ttl    time.Duration
	expiry *time.Timer
}

// leases is the [clientv3.Lease] of a connection.
type leases struct{ *connection }

// Grant implements [clientv3.Lease].
func (l leases) Grant(ctx context.Context, ttl int64) (response *clientv3.LeaseGrantResponse, err error) {
	s := l.store
	err = l.call(ctx, "grant", func() {
		s.last++
		id, long := s.last, time.Duration(ttl)*time.Second
		s.leases[id] = &lease{long, time.AfterFunc(long, func() { s.expire(id) })}
		response = &clientv3.LeaseGrantResponse{ResponseHeader: s.header(), ID: id, TTL: ttl}
	})
	if err != nil {
		return nil, err
	}
	return response, nil
}

// Revoke implements [clientv3.Lease].
func (l leases) Revoke(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseRevokeResponse, error) {
	err := l.call(ctx, "revoke", func() { l.store.end(id) })
	return &clientv3.LeaseRevokeResponse{}, err
}

// KeepAlive implements [clientv3.Lease].
func (l leases) KeepAlive(ctx context.Context, id clientv3.LeaseID) (<-chan *clientv3.LeaseKeepAliveResponse, error) {
	answers := make(chan *clientv3.LeaseKeepAliveResponse)
	go func() {
		defer close(answers)
		for until := time.Now().Add(time.Hour); time.Now().Before(until); {
			ttl, err := l.renew(ctx, id)
			if errors.Is(err, errUnknownLease) {
				return
			}
			if err == nil {
				until = time.Now().Add(ttl)
			}
			pause := time.NewTimer(max(ttl/3, 500*time.Millisecond))
			select {
			case <-pause.C:
			case <-ctx.Done():
				return
			case <-l.life.Done():
				return
			}
		}
	}()
	return answers, nil
}

func (l leases) renew(ctx context.Context, id clientv3.LeaseID) (ttl time.Duration, err error) {
	known := false
	err = l.call(ctx, "keepalive", func() {
		if held := l.store.leases[id]; held != nil {
			known, ttl = true, held.ttl
			held.expiry.Reset(held.ttl)
		}
	})
	if err == nil && !known {
		err = errUnknownLease
	}
	return ttl, err
}

func (s *Store) expire(id clientv3.LeaseID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end(id)
}

// end deletes a lease and its keys.
func (s *Store) end(id clientv3.LeaseID) {
	held := s.leases[id]
	if held == nil {
		return
	}
	held.expiry.Stop()
	delete(s.leases, id)
	t := &transaction{s: s, revision: s.revision + 1}
	for _, kv := range s.inRange([]byte{0}, []byte{0}, s.revision) {
		if kv.Lease == int64(id) {
			t.events = append(t.events, &clientv3.Event{Type: clientv3.EventTypeDelete,
				Kv: &mvccpb.KeyValue{Key: kv.Key, ModRevision: t.revision}})
		}
	}
	t.commit()
}

// Close ends all leases and their timers.
func (s *Store) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := make([]clientv3.LeaseID, 0, len(s.leases))
	for id := range s.leases {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		s.end(id)
	}
}

// TimeToLive implements [clientv3.Lease].
func (l leases) TimeToLive(context.Context, clientv3.LeaseID, ...clientv3.LeaseOption) (*clientv3.LeaseTimeToLiveResponse, error) {
	panic("memory: not needed")
}

// Leases implements [clientv3.Lease].
func (l leases) Leases(context.Context) (*clientv3.LeaseLeasesResponse, error) {
	panic("memory: not needed")
}

// KeepAliveOnce implements [clientv3.Lease].
func (l leases) KeepAliveOnce(context.Context, clientv3.LeaseID) (*clientv3.LeaseKeepAliveResponse, error) {
	panic("memory: not needed")
}

// Close implements [clientv3.Lease].
func (l leases) Close() error { return nil }
