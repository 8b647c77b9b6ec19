package locks_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/memory"
	"github.com/holdfast-dev/holdfast/server/locks"
)

// hanging is a store in memory on whose link single transactions hang.
type hanging struct {
	*kv.Store
	mu   sync.Mutex
	next chan struct{} // the next transaction waits for it
}

func openHanging(t *testing.T) (*locks.Table, *hanging) {
	t.Helper()
	m, s := memory.New(), &hanging{}
	s.Store = m.Client(func(_ context.Context, request string) (before, after error) {
		if request != "txn" {
			return nil, nil
		}
		if wait := s.hang(nil); wait != nil {
			<-wait
		}
		return nil, nil
	})
	table := locks.OpenInMemory(t, m, s)
	return table, s
}

// hang makes the next transaction wait for a channel, and returns the former one.
func (s *hanging) hang(next chan struct{}) (former chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	former, s.next = s.next, next
	return former
}

// A request's place in the queue is on its way, together with another change, when the request gives up. The place must
// not come after the request has left: nobody would remove it.
func TestNoPlaceComesAfterItsRequestHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, store := openHanging(t)
		held, err := table.Acquire(t.Context(), want(ann, at("a")))
		require.NoError(t, err)
		synctest.Wait() // the table sees it
		var running sync.WaitGroup
		change := func(key string) {
			running.Go(func() { _, _ = store.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Put(key, nil)}}) })
			synctest.Wait()
		}
		earlier, shared := make(chan struct{}), make(chan struct{})
		store.hang(earlier)
		change("x")
		store.hang(shared)
		begun := time.Now()
		running.Go(func() {
			r := want(bob, at("a"))
			r.Wait = time.Hour
			_, err := table.Acquire(t.Context(), r)
			assert.ErrorIs(t, err, kv.ErrUnavailable)
		})
		synctest.Wait()
		change("y")
		time.Sleep(30 * time.Millisecond) // bob's place and y are on their way
		close(earlier)
		time.Sleep(time.Second)
		change("z") // so that nothing waits any longer for them
		time.Sleep(time.Until(begun.Add(5*time.Second + 10*time.Millisecond)))
		close(shared)
		running.Wait()
		time.Sleep(time.Second)
		assert.Zero(t, table.Waiting())
		require.NoError(t, table.Release(t.Context(), held.ID, ann.ID))
		_, err = table.Acquire(t.Context(), want(eve, at("a")))
		require.NoError(t, err)
	})
}

// late is a store that makes the next transaction only later, and whose answer to it is lost.
type late struct {
	*kv.Store
	mu   sync.Mutex
	next chan struct{} // the transaction waits for it
	made chan struct{} // closed then
}

func (s *late) Commit(ctx context.Context, txn kv.Txn) (kv.Result, error) {
	s.mu.Lock()
	wait := s.next
	s.next = nil
	s.mu.Unlock()
	if wait == nil {
		return s.Store.Commit(ctx, txn)
	}
	go func() {
		defer close(s.made)
		<-wait
		_, _ = s.Store.Commit(context.WithoutCancel(ctx), txn)
	}()
	return kv.Result{}, kv.ErrUnavailable
}

// A store whose leader hangs may carry out a transaction long after its answer was given up. A place in the queue that comes so late
// blocks nobody, with a ticket and without one.
func TestAPlaceThatComesLateIsRemoved(t *testing.T) {
	for _, name := range []string{"", "bobs-ticket"} {
		synctest.Test(t, func(t *testing.T) {
			m := memory.New()
			store := &late{Store: m.Client(nil), made: make(chan struct{})}
			table := locks.OpenInMemory(t, m, store)
			held, err := table.Acquire(t.Context(), want(ann, at("a")))
			require.NoError(t, err)
			synctest.Wait() // the table sees it
			hangs := make(chan struct{})
			store.mu.Lock()
			store.next = hangs
			store.mu.Unlock()
			r := want(bob, at("a"))
			r.Wait, r.Ticket = 10*time.Second, name
			_, err = table.Acquire(t.Context(), r)
			require.ErrorIs(t, err, kv.ErrUnavailable)
			close(hangs)
			<-store.made
			synctest.Wait()
			assert.Zero(t, table.Waiting())
			require.NoError(t, table.Release(t.Context(), held.ID, ann.ID))
			_, err = table.Acquire(t.Context(), want(eve, at("a")))
			require.NoError(t, err)
		})
	}
}

// gap is a store whose first watch is cut, until the history that it has missed is compacted.
type gap struct {
	*late
	cut, compacted chan struct{}
	once           sync.Once
}

func (s *gap) Watch(ctx context.Context, prefix string, after int64, f func([]kv.Change) error) error {
	first := false
	s.once.Do(func() { first = true })
	if !first {
		return s.late.Watch(ctx, prefix, after, f)
	}
	watching, stop := context.WithCancel(ctx)
	go func() { <-s.cut; stop() }()
	_ = s.late.Watch(watching, prefix, after, f)
	select {
	case <-s.compacted:
	case <-ctx.Done():
	}
	return kv.ErrCompacted
}

// A place comes late while the server's watch is interrupted. The server finds it when it reads the table again.
func TestALatePlaceThatIsReadAgainIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memory.New()
		store := &gap{cut: make(chan struct{}), compacted: make(chan struct{}),
			late: &late{Store: m.Client(nil), made: make(chan struct{})}}
		table := locks.OpenInMemory(t, m, store)
		_, err := table.Acquire(t.Context(), want(ann, at("a")))
		require.NoError(t, err)
		synctest.Wait() // the table sees it
		close(store.cut)
		synctest.Wait()
		hangs := make(chan struct{})
		store.mu.Lock()
		store.next = hangs
		store.mu.Unlock()
		r := want(bob, at("a"), at("b"))
		r.Wait = 10 * time.Second
		_, err = table.Acquire(t.Context(), r)
		require.ErrorIs(t, err, kv.ErrUnavailable)
		close(hangs)
		<-store.made
		eves := want(eve, at("b"))
		_, err = table.Acquire(t.Context(), eves)
		require.ErrorAs(t, err, new(*locks.DeniedError), "the late place is in the queue")
		close(store.compacted)
		synctest.Wait()
		_, err = table.Acquire(t.Context(), eves)
		require.NoError(t, err)
	})
}
