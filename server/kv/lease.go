package kv

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Lease keeps keys alive for as long as this process does: when it dies, the keys bound to the lease go after the
// lease's time. It is a backstop, not a clock: after a change of the cluster's leader its time starts anew.
type Lease struct {
	id     clientv3.LeaseID
	client *clientv3.Client
	stop   context.CancelFunc
	lost   chan struct{}
}

// Lease takes a lease and renews it until it is closed. Its time is at least one second, in whole seconds.
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
		for range answers { // until it expires, is revoked, or the store is closed
		}
	}()
	return l, nil
}

// Countdown takes a lease that nobody renews: the keys bound to it go after its time, whatever becomes of this process.
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

// Lost is closed when the lease is renewed no longer: it expired or was closed. Take another one then and put the keys
// again.
func (l *Lease) Lost() <-chan struct{} { return l.lost }

// Close gives the lease back; the keys bound to it go at once.
func (l *Lease) Close(ctx context.Context) error {
	l.stop()
	<-l.lost
	_, err := l.client.Revoke(ctx, l.id)
	return plainError(err)
}
