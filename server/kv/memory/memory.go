// Package memory is an etcd in memory, for simulations in virtual time. It answers kv's client like a cluster member
// that never loses anything. Its [Link] decides what happens to each request on the way.
//
// It has transactions, revisions, reads at a revision, watches and leases. It does not compact.
package memory

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-dev/holdfast/server/kv"
)

// Link is the connection from one process to the store. It is called with each request, and may take time. If before
// is not nil, the request never arrives. If after is not nil, the request is carried out and its answer is lost. The
// client gets an error for both.
type Link func(ctx context.Context, request string) (before, after error)

// ErrLost is the client's error for a lost request or a lost answer.
var ErrLost = status.Error(codes.Unavailable, "the simulated connection to the store broke")

// ErrNoSpace is etcd's error for a transaction that exceeds its quota. A link returns it as after for the first one, which etcd carries out, and
// as before for the others.
var ErrNoSpace = rpctypes.ErrGRPCNoSpace

// Late makes a [Link] lose the answer to a transaction at once, while the transaction is still on its way: the store carries it out after
// a time, as a cluster may whose leader hung meanwhile, and then calls Done. A link returns it as before, and for transactions only.
type Late struct {
	After time.Duration
	Done  func()
}

// Delaying returns a client. Once late is set, its next transaction gets no answer. It reaches the store after a time, and then arrived is closed.
func (s *Store) Delaying(after time.Duration) (client *kv.Store, late *atomic.Bool, arrived chan struct{}) {
	late, arrived = new(atomic.Bool), make(chan struct{})
	client = s.Client(func(_ context.Context, request string) (lost, _ error) {
		if request == "txn" && late.CompareAndSwap(true, false) {
			lost = &Late{After: after, Done: func() { close(arrived) }}
		}
		return lost, nil
	})
	return client, late, arrived
}

// Error implements error.
func (l *Late) Error() string { return "the transaction arrives after its answer was given up" }

// Store is the state that all clients share.
type Store struct {
	mu       sync.Mutex
	revision int64
	names    []string                     // of all keys that there ever were, in order
	past     map[string][]*clientv3.Event // of each of them, in order
	history  []*clientv3.Event            // of all keys, in order
	changed  chan struct{}                // closed and replaced at each revision
	leases   map[clientv3.LeaseID]*lease
	last     clientv3.LeaseID
}

// New returns an empty store.
func New() *Store {
	return &Store{revision: 1, past: make(map[string][]*clientv3.Event), changed: make(chan struct{}), leases: make(map[clientv3.LeaseID]*lease)}
}

// Client returns the connection of one process to the store. Without a link, every request and every answer arrives. Closing it ends its
// watches and keep-alives.
func (s *Store) Client(link Link) *kv.Store {
	if link == nil {
		link = func(context.Context, string) (before, after error) { return nil, nil }
	}
	client := clientv3.NewCtxClient(context.Background())
	c := &connection{store: s, link: link, life: client.Ctx()}
	client.KV = clientv3.NewKVFromKVClient(c, client)
	client.Lease, client.Watcher = leases{c}, watcher{c}
	return kv.Over(client, c)
}

// connection is the connection of one client.
type connection struct {
	store *Store
	link  Link
	life  context.Context
}

// call carries out a request at the store, if the request arrives.
func (c *connection) call(ctx context.Context, request string, do func()) error {
	before, after := c.link(ctx, request)
	switch {
	case before != nil:
		return before
	case ctx.Err() != nil:
		return ctx.Err()
	case c.life.Err() != nil:
		return c.life.Err()
	}
	c.store.mu.Lock()
	do()
	c.store.mu.Unlock()
	return after
}
