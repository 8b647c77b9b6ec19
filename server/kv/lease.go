package kv

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Lease keeps keys alive while this process lives. After the process dies, the keys bound to the lease are deleted at
// the end of its TTL. The TTL is a safety net, not an exact clock: it restarts when the cluster changes its leader.
type Lease struct {
	id     clientv3.LeaseID
	client *clientv3.Client
	stop   context.CancelFunc
	lost   chan struct{}
}

// Lease acquires a lease and renews it until Close. The TTL has whole seconds, at least one.
func (s *Store) Lease(ctx context.Context, ttl time.Duration) (*Lease, error) {
	l, err := s.grant(ctx, ttl)
	if err != nil {
		return nil, err
	}
	renewing, stop := context.WithCancel(context.Background())
	answers, err := s.client.KeepAlive(renewing, l.id)
	if err != nil {
		stop()
		return nil, plainError(err)
	}
	l.stop = stop
	go func() {
		defer close(l.lost)
		for range answers { // until the lease expires or is revoked, or the store is closed
		}
	}()
	return l, nil
}

// Countdown acquires a lease without renewing it. The keys bound to it are deleted at the end of its TTL, whatever
// happens to this process.
func (s *Store) Countdown(ctx context.Context, ttl time.Duration) (*Lease, error) {
	l, err := s.grant(ctx, ttl)
	if err == nil {
		close(l.lost)
	}
	return l, err
}

func (s *Store) grant(ctx context.Context, ttl time.Duration) (*Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	granted, err := s.client.Grant(ctx, max(1, int64(ttl/time.Second)))
	if err != nil {
		return nil, plainError(err)
	}
	return &Lease{id: granted.ID, client: s.client, stop: func() {}, lost: make(chan struct{})}, nil
}

// Lost returns a channel that is closed when the lease is no longer renewed: it expired or was closed. The caller
// then acquires another lease and puts the keys again.
func (l *Lease) Lost() <-chan struct{} { return l.lost }

// Close revokes the lease. The keys bound to it are deleted at once.
func (l *Lease) Close(ctx context.Context) error {
	l.stop()
	<-l.lost
	_, err := l.client.Revoke(ctx, l.id)
	return plainError(err)
}
