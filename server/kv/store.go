package kv

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/namespace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-dev/holdfast/server/traces"
)

// Store is an open store. Its methods may be called from any goroutine.
type Store struct {
	client   *clientv3.Client
	txns     pb.KVClient // carries out transactions
	embedded *embedded   // nil with an external cluster
	endpoint string
	timeout  time.Duration
	shared   bool                                  // with a prefix, in a cluster that others use too
	dial     func(endpoint string) (*Store, error) // opens one member of an external cluster
	queue    queue                                 // of transactions
	close    sync.Once
	closeErr error
}

// Entry is a key with its value. The zero Entry means that the key does not exist.
type Entry struct {
	Key   string
	Value []byte
	// Created and Modified are the revisions that created the key and that last changed it.
	Created, Modified int64
}

// Found reports whether the key exists.
func (e Entry) Found() bool { return e.Modified != 0 }

// Open opens the store. ctx limits only the opening; [Store.Close] closes the store.
//
// It fails with [ErrInUse] when another process uses the data directory, and with [ErrUnavailable] when no endpoint
// of an external cluster answers before ctx ends.
func Open(ctx context.Context, c Config) (*Store, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	if c.DataDir != "" {
		return openEmbedded(ctx, c)
	}
	s, err := connect(c, c.Endpoints)
	if err != nil {
		return nil, err
	}
	if err := s.Ready(ctx); err != nil {
		reason := c.TLS.refusal(ctx, c.Endpoints[0])
		return nil, errors.Join(fmt.Errorf("no answer from etcd at %v: %w", c.Endpoints, errors.Join(reason, err)), s.Close())
	}
	return s, nil
}

// connect creates a client for the endpoints without waiting for them.
func connect(c Config, endpoints []string) (*Store, error) {
	secure, err := c.TLS.client()
	if err != nil {
		return nil, err
	}
	client, err := clientv3.New(clientv3.Config{
		TLS: secure, Username: c.User, Password: c.Password,
		Endpoints:            endpoints,
		DialTimeout:          c.Timeout, // of the password, too
		DialKeepAliveTime:    5 * time.Second,
		DialKeepAliveTimeout: 3 * time.Second,
		// By default gRPC retries a store that has been away for long only every two minutes.
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: 2 * time.Second,
		})},
		Logger: zapOver(c.Log, nil),
	})
	if err != nil {
		return nil, err
	}
	txns := clientv3.RetryKVClient(client)
	if c.Prefix != "" {
		txns = prefixed{txns, c.Prefix}
		client.KV = namespace.NewKV(client.KV, c.Prefix)
		client.Watcher = namespace.NewWatcher(client.Watcher, c.Prefix)
	}
	dial := func(endpoint string) (*Store, error) { return connect(c, []string{endpoint}) }
	return &Store{client: client, txns: txns, endpoint: endpoints[0], timeout: c.Timeout, shared: c.Prefix != "", dial: dial}, nil
}

// Over returns a store that uses the caller's client, and sends transactions through txns. [Store.Close] closes the client.
func Over(client *clientv3.Client, txns pb.KVClient) *Store {
	return &Store{client: client, txns: txns, timeout: defaultTimeout}
}

// Close ends every watch and lease of this store, and the embedded etcd. Committed changes stay. A second Close does
// nothing.
func (s *Store) Close() error {
	s.close.Do(func() {
		// The client must close first, because it would wait for a server that no longer answers.
		s.closeErr = s.client.Close()
		if errors.Is(s.closeErr, context.Canceled) {
			s.closeErr = nil // the in-process client reports its own closing this way
		}
		if s.embedded != nil {
			s.closeErr = errors.Join(s.closeErr, s.embedded.close())
		}
	})
	return s.closeErr
}

// Endpoint is an address through which another [Open] reaches the same store. For an embedded etcd it is the socket.
func (s *Store) Endpoint() string { return s.endpoint }

// SingleServer reports whether no other server can have the store open: the store is embedded in a cluster of one.
func (s *Store) SingleServer() bool { return s.embedded != nil && s.embedded.single }

// Embedded reports whether the store's etcd runs in this process.
func (s *Store) Embedded() bool { return s.embedded != nil }

// Shared reports whether the cluster has keys of others too: the store has a prefix.
func (s *Store) Shared() bool { return s.shared }

// Failed delivers the error of an embedded etcd that ended without Close. With an external cluster the channel is
// nil, so receiving blocks forever.
func (s *Store) Failed() <-chan error {
	if s.embedded == nil {
		return nil
	}
	return s.embedded.failed
}

// Ready returns nil if the store answers, or an error that says why not.
func (s *Store) Ready(ctx context.Context) error {
	_, _, err := s.Get(ctx, "ready")
	return err
}

// Get reads one key and returns the revision of the read. A missing key is the zero [Entry].
func (s *Store) Get(ctx context.Context, key string) (Entry, int64, error) {
	return one(s.get(ctx, key))
}

// GetAt reads a key as of a revision. It fails with [ErrCompacted] if that revision has been compacted.
func (s *Store) GetAt(ctx context.Context, key string, revision int64) (Entry, error) {
	e, _, err := one(s.get(ctx, key, clientv3.WithRev(revision)))
	return e, err
}

// Range reads every key that begins with prefix, in order of keys. It returns the revision of the read.
func (s *Store) Range(ctx context.Context, prefix string) ([]Entry, int64, error) {
	return s.get(ctx, prefix, clientv3.WithPrefix())
}

// Each calls f with the entries of all keys that begin with prefix, in order of keys and as of one revision, which it
// returns. It reads limit entries at a time, so neither the number of keys nor the timeout limits the total. It fails
// with f's error, or with [ErrCompacted] if the revision is compacted meanwhile.
func (s *Store) Each(ctx context.Context, prefix string, limit int64, f func([]Entry) error) (int64, error) {
	return s.pages(ctx, prefix, limit, true, f)
}

// pages calls f with each page of keys that begin with prefix, and returns the revision of the first page. The other pages are as of that
// revision too, or as they are when they are read.
func (s *Store) pages(ctx context.Context, prefix string, limit int64, oneRevision bool, f func([]Entry) error) (at int64, err error) {
	options := []clientv3.OpOption{clientv3.WithRange(clientv3.GetPrefixRangeEnd(prefix)), clientv3.WithLimit(limit)}
	for first := prefix; ; {
		page, revision, err := s.getWithin(ctx, max(s.timeout, pageTimeout), first, options...)
		if err != nil {
			return 0, err
		}
		if at == 0 {
			at = revision
			if oneRevision {
				options = append(options, clientv3.WithRev(at))
			}
		}
		if err := f(page); err != nil {
			return 0, err
		}
		if int64(len(page)) < limit {
			return at, nil
		}
		first = page[len(page)-1].Key + "\x00"
	}
}

// RangeAt is Range as of a revision. It fails with [ErrCompacted] if that revision has been compacted.
func (s *Store) RangeAt(ctx context.Context, prefix string, revision int64) ([]Entry, error) {
	list, _, err := s.get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithRev(revision))
	return list, err
}

// Page reads at most limit keys that begin with prefix and follow the key after, in order.
func (s *Store) Page(ctx context.Context, prefix, after string, limit int64) ([]Entry, error) {
	first := prefix
	if after >= prefix {
		first = after + "\x00"
	}
	list, _, err := s.get(ctx, first, clientv3.WithRange(clientv3.GetPrefixRangeEnd(prefix)), clientv3.WithLimit(limit))
	return list, err
}

// Count returns the number of keys that begin with prefix.
func (s *Store) Count(ctx context.Context, prefix string) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	response, err := s.client.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return 0, plainError(err)
	}
	return response.Count, nil
}

// Keys reads the keys that begin with prefix, without values, in order.
func (s *Store) Keys(ctx context.Context, prefix string) ([]string, error) {
	list, _, err := s.get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	keys := make([]string, len(list))
	for i, e := range list {
		keys[i] = e.Key
	}
	return keys, err
}

func (s *Store) get(ctx context.Context, key string, options ...clientv3.OpOption) ([]Entry, int64, error) {
	return s.getWithin(ctx, s.timeout, key, options...)
}

// pageTimeout is how long one page of [Store.Each] may take. An external etcd counts all keys that follow, so on a busy machine a
// page of a million keys takes longer than any other request.
const pageTimeout = time.Minute

func (s *Store) getWithin(ctx context.Context, limit time.Duration, key string, options ...clientv3.OpOption) ([]Entry, int64, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ctx, done := traces.Step(ctx, "etcd read")
	response, err := s.client.Get(ctx, key, options...)
	done(err)
	if err != nil {
		return nil, 0, plainError(err)
	}
	return entries(response.Kvs), response.Header.Revision, nil
}

// Compact deletes the history before a revision. The revision itself can still be read.
func (s *Store) Compact(ctx context.Context, revision int64) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	_, err := s.client.Compact(ctx, revision)
	return plainError(err)
}

func one(list []Entry, revision int64, err error) (Entry, int64, error) {
	if err != nil || len(list) == 0 {
		return Entry{}, revision, err
	}
	return list[0], revision, nil
}

func entries(list []*mvccpb.KeyValue) []Entry {
	found := make([]Entry, len(list))
	for i, kv := range list {
		found[i] = entry(kv)
	}
	return found
}

func entry(kv *mvccpb.KeyValue) Entry {
	return Entry{Key: string(kv.Key), Value: kv.Value, Created: kv.CreateRevision, Modified: kv.ModRevision}
}

// oversized reports whether the client refused to send a request because of its size.
func oversized(err error) bool {
	var known rpctypes.EtcdError
	return status.Code(err) == codes.ResourceExhausted && !errors.As(err, &known)
}

// plainError translates etcd's errors into this package's errors.
func plainError(err error) error {
	switch {
	case err == nil, errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, rpctypes.ErrCompacted), err.Error() == rpctypes.ErrCompacted.Error():
		return ErrCompacted
	case errors.Is(err, rpctypes.ErrRequestTooLarge), errors.Is(err, rpctypes.ErrTooManyOps), oversized(err):
		return fmt.Errorf("%w: %w", ErrTooLarge, err)
	case errors.Is(err, rpctypes.ErrNoSpace):
		return fmt.Errorf("%w: %w", ErrFull, err)
	case errors.Is(err, rpctypes.ErrDuplicateKey), errors.Is(err, rpctypes.ErrFutureRev):
		return err // a mistake of the caller that a retry does not fix
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}
