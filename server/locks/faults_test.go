package locks

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
	"github.com/holdfast-dev/holdfast/server/kv/memory"
	"github.com/holdfast-dev/holdfast/server/metrics"
)

// faulty is a store whose commits and reads a test can make fail, before or after they run.
type faulty struct {
	*kv.Store
	mu            sync.Mutex
	before, after func(kv.Txn) error
	reads         error
	slow          bool // leases take longer than any request waits
}

func (f *faulty) set(change func(*faulty)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func (f *faulty) Commit(ctx context.Context, txn kv.Txn) (kv.Result, error) {
	f.mu.Lock()
	before, after := f.before, f.after
	f.mu.Unlock()
	if before != nil {
		if err := before(txn); err != nil {
			return kv.Result{}, err
		}
	}
	result, err := f.Store.Commit(ctx, txn)
	if err == nil && result.Held && after != nil {
		if err := after(txn); err != nil {
			return kv.Result{}, err
		}
	}
	return result, err
}

func (f *faulty) Countdown(ctx context.Context, ttl time.Duration) (*kv.Lease, error) {
	f.mu.Lock()
	slow := f.slow
	f.mu.Unlock()
	if slow {
		<-ctx.Done()
		return nil, fmt.Errorf("%w: %w", kv.ErrUnavailable, ctx.Err())
	}
	return f.Store.Countdown(ctx, ttl)
}

func (f *faulty) GetAt(ctx context.Context, key string, revision int64) (kv.Entry, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.reads != nil {
		return kv.Entry{}, f.reads
	}
	return f.Store.GetAt(ctx, key, revision)
}

// opensFaulty returns a table over a faulty store, and a function that reads a counter by name.
func opensFaulty(t *testing.T) (*Table, *faulty, func(name string) float64) {
	t.Helper()
	return faultyOver(t, kvtest.Open(t))
}

// opensFaultyInMemory is opensFaulty for virtual time.
func opensFaultyInMemory(t *testing.T) (*Table, *faulty) {
	t.Helper()
	m := memory.New()
	client := m.Client(nil)
	t.Cleanup(func() { assert.NoError(t, client.Close()); m.Close() })
	table, store, _ := faultyOver(t, client)
	return table, store
}

func faultyOver(t *testing.T, real *kv.Store) (*Table, *faulty, func(name string) float64) {
	t.Helper()
	registry := prometheus.NewRegistry()
	store := &faulty{Store: real}
	table, err := Open(t.Context(), store, Config{Metrics: metrics.New(registry)})
	require.NoError(t, err)
	t.Cleanup(table.Close)
	return table, store, func(name string) float64 {
		families, err := registry.Gather()
		require.NoError(t, err)
		for _, f := range families {
			if f.GetName() == "holdfast_"+name {
				return f.GetMetric()[0].GetCounter().GetValue()
			}
		}
		return -1
	}
}

func grants(txn kv.Txn) bool {
	for _, op := range txn.Then {
		if op.Puts() && len(op.Key()) > len(claimPrefix) && op.Key()[:len(claimPrefix)] == claimPrefix {
			return true
		}
	}
	return false
}

// The answer to a grant is lost, or a store that has just become full refuses the grant although it has made it, and then
// the wait is over. The caller must not receive an error that says that it has no lock.
func TestUnknownGrantIsNoTimeout(t *testing.T) {
	for name, unknown := range map[string]error{"lost": kv.ErrUnavailable, "full": kv.ErrFull} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				table, store := opensFaultyInMemory(t)
				p := Path{"a"}
				held, err := table.Acquire(t.Context(), Request{Paths: []Path{p}, Holder: Holder{ID: "ann"}, TTL: time.Minute})
				require.NoError(t, err)
				const patience = 2 * time.Second
				store.set(func(f *faulty) {
					f.after = func(txn kv.Txn) error {
						if !grants(txn) {
							return nil
						}
						time.Sleep(patience)
						return unknown
					}
				})
				time.AfterFunc(patience/20, func() { assert.NoError(t, table.Release(context.Background(), held.ID, "ann")) })
				_, err = table.Acquire(t.Context(), Request{Paths: []Path{p}, Holder: Holder{ID: "bob"}, TTL: time.Minute, Wait: patience})
				require.ErrorIs(t, err, unknown)
				require.NotErrorIs(t, err, ErrTimeout)
			})
		})
	}
}

// A store that does not answer does not count as a rejection. The metric counts refused tokens.
func TestStoreErrorsAreNoFenceRejections(t *testing.T) {
	table, store, count := opensFaulty(t)
	store.set(func(f *faulty) { f.reads = kv.ErrUnavailable })
	_, err := table.Fence(t.Context(), Path{"a"}, "ann", 1)
	require.ErrorIs(t, err, kv.ErrUnavailable)
	assert.Zero(t, count("fence_rejections_total"))
	store.set(func(f *faulty) { f.reads = nil })
	_, err = table.Fence(t.Context(), Path{"a"}, "ann", 1)
	require.ErrorIs(t, err, ErrNotHolder)
	assert.InDelta(t, 1, count("fence_rejections_total"), 0)
}

// For this server, a lease in the store has expired. Another server extended it, but this server's watch does not
// show that. A request does not wait forever for the watch.
func TestServerWithoutWatchReportsUnavailable(t *testing.T) {
	table, store, _ := opensFaulty(t)
	held, err := table.Acquire(t.Context(), Request{Paths: []Path{{"a"}}, Holder: Holder{ID: "ann"}, TTL: 2 * time.Second})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		table.mirror.mu.Lock()
		defer table.mirror.mu.Unlock()
		return len(table.mirror.held) == 1
	}, 30*time.Second, time.Millisecond)
	table.stopWatching()
	s, err := table.byID(t.Context(), held.ID, "ann")
	require.NoError(t, err)
	_, err = store.Store.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Put(s.beatKey(), encodeBeat(time.Now().Add(time.Hour)))}})
	require.NoError(t, err)
	time.Sleep(time.Until(held.ExpiresAt) + 10*time.Millisecond)
	_, err = table.Acquire(t.Context(), Request{Paths: []Path{{"a"}}, Holder: Holder{ID: "bob"}, TTL: time.Minute})
	require.ErrorIs(t, err, kv.ErrUnavailable)
}

// On a slow store the wait may end before the request has joined the queue. Then nothing was granted.
func TestTimeoutBeforeJoiningTheQueue(t *testing.T) {
	table, store, _ := opensFaulty(t)
	r := Request{Paths: []Path{{"p"}}, Holder: Holder{"ann", "Ann"}, TTL: time.Minute}
	_, err := table.Acquire(t.Context(), r)
	require.NoError(t, err)
	store.set(func(f *faulty) { f.slow = true })
	r.Holder, r.Wait = Holder{"bob", "Bob"}, 20*time.Millisecond
	_, err = table.Acquire(t.Context(), r)
	require.ErrorIs(t, err, ErrTimeout)
}
