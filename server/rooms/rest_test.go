package rooms

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
)

// counting counts the requests to a store and the entries that they return.
type counting struct {
	*kv.Store
	requests, entries atomic.Int64
}

func (c *counting) Get(ctx context.Context, key string) (kv.Entry, int64, error) {
	c.requests.Add(1)
	return c.Store.Get(ctx, key)
}

func (c *counting) Each(ctx context.Context, prefix string, limit int64, f func([]kv.Entry) error) (int64, error) {
	return c.Store.Each(ctx, prefix, limit, func(entries []kv.Entry) error {
		c.requests.Add(1)
		c.entries.Add(int64(len(entries)))
		return f(entries)
	})
}

func (c *counting) Commit(ctx context.Context, txn kv.Txn) (kv.Result, error) {
	c.requests.Add(1)
	return c.Store.Commit(ctx, txn)
}

func (c *counting) CommitEach(ctx context.Context, txns []kv.Txn) ([]bool, error) {
	c.requests.Add(1)
	return c.Store.CommitEach(ctx, txns)
}

// settleRooms puts rooms at rest into a store. Each has one participant, whose socket is at another living instance.
func settleRooms(t *testing.T, store *kv.Store, n int) {
	t.Helper()
	ops := []kv.Op{kv.Put(instancePrefix+"other", nil)}
	for i := range n {
		token := newToken()
		r := must(room{ID: fmt.Sprint(i)}.enter(token, "Ann", ""))(t)
		ops = append(ops, kv.Put(roomPrefix+r.ID, must(r.encode())(t)), kv.Put(updatePrefix+r.ID, encodeTime(time.Now())),
			kv.Put(memberPrefix+token, []byte(r.ID)), kv.Put(socketPrefix+token, []byte("other")))
		if len(ops) > kv.MaxOps-4 || i == n-1 {
			must(store.Commit(t.Context(), kv.Txn{Then: ops}))(t)
			ops = nil
		}
	}
}

// The periodic work of an instance does not grow with the number of rooms or sockets at rest. The sweeper under test is
// not started: a round of its own would be counted too, or not, depending on when it runs.
func TestRoomsAtRestCostNothing(t *testing.T) {
	work := func(rooms int) [3]int64 {
		store := &counting{Store: kvtest.Open(t)}
		settleRooms(t, store.Store, rooms)
		config := must(Config{Store: store}.withDefaults())(t)
		w := newSweeper(&Rooms{config: config, table: &table{instance: config.Instance, queue: queue{store: store, now: config.Now}}})
		require.NoError(t, w.beat(t.Context()))
		for _, k := range w.seen.kinds() {
			must(w.seen.readAll(t.Context(), store, k))(t)
		}
		assert.Len(t, w.seen.updates, rooms)
		assert.Len(t, w.seen.sockets, rooms)
		requests, entries := store.requests.Load(), store.entries.Load()
		for range 10 {
			require.NoError(t, w.beat(t.Context()))
			require.NoError(t, w.look(t.Context(), time.Now()))
			require.NoError(t, w.closeIdle(t.Context()))
		}
		return [3]int64{store.requests.Load() - requests, store.entries.Load() - entries, int64(w.seen.looked)}
	}
	few := work(10)
	assert.Equal(t, few, work(10_000))
	assert.Equal(t, [3]int64{10, 0, 30}, few, "a sign of life each time, and a look at two instances and the room that changed first")
}

// After a compaction an instance reads everything again and forgets the entries that were deleted meanwhile.
func TestPresenceAfterACompaction(t *testing.T) {
	store := &faulty{Store: kvtest.Open(t)}
	settleRooms(t, store.Store, 3)
	former := presencePage
	presencePage = 2
	t.Cleanup(func() { presencePage = former })
	a := start(t, Config{Store: store, Heartbeat: time.Hour, Dead: 2 * time.Hour, IdleScan: time.Hour})
	counts := func() [4]int {
		p := a.sweeper.seen
		p.mu.Lock()
		defer p.mu.Unlock()
		return [4]int{len(p.peers), len(p.sockets), len(p.members), len(p.updates)}
	}
	eventually(t, "everything has been read", func() bool { return counts() == [4]int{2, 3, 3, 3} })
	must(store.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Delete(updatePrefix + "1")}}))(t)
	eventually(t, "the watch has told", func() bool { return counts() == [4]int{2, 3, 3, 2} })
	store.cut(kv.ErrCompacted)
	must(store.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.DeleteUnder(updatePrefix), kv.DeleteUnder(socketPrefix), kv.DeleteUnder(memberPrefix)}}))(t)
	eventually(t, "it is gone", func() bool { return counts() == [4]int{2, 0, 0, 0} })
	settleRooms(t, store.Store, 2)
	eventually(t, "new ones are there", func() bool { return counts() == [4]int{2, 2, 2, 2} })
}
