package asks

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv/memory"
	"github.com/holdfast-dev/holdfast/server/locks"
)

// between is the scene of a question whose asker's server makes a change of the store. The test changes the store just before that.
type between struct {
	relay  *Relay // of the holders
	asker  *Relay
	before func() bool // reports whether it is the moment of the change
	change func()
}

func newBetween(t *testing.T) *between {
	t.Helper()
	b := &between{}
	shared := memory.New()
	member := func(before func(string)) *Relay {
		store := shared.Client(func(_ context.Context, request string) (_, _ error) { before(request); return nil, nil })
		return New(store, tableOver(t, store), nil)
	}
	b.relay = member(func(string) {})
	b.asker = member(func(request string) {
		if request == "txn" && b.change != nil && b.before() {
			change := b.change
			b.change = nil
			change()
		}
	})
	return b
}

func (b *between) acquire(t *testing.T, holder string) locks.Lease {
	t.Helper()
	held, err := b.relay.table.Acquire(t.Context(), locks.Request{Paths: []locks.Path{locks.Document("r")}, Holder: locks.Holder{ID: holder}, TTL: time.Hour})
	assert.NoError(t, err)
	return held
}

// handsOver makes a client ask, and the holder hands the lock over.
func (b *between) handsOver(t *testing.T, holder string, held *locks.Lease) {
	t.Helper()
	outcome := make(chan error, 1)
	go func() {
		request := locks.Request{Paths: []locks.Path{locks.Document("r")}, Holder: locks.Holder{ID: "bob"}, TTL: time.Hour}
		_, err := b.asker.Ask(t.Context(), request, grace)
		outcome <- err
	}()
	synctest.Wait()
	require.Nil(t, b.change, "the lock changes its holder")
	require.NoError(t, b.relay.Accept(t.Context(), Answer{Document: "r", Holder: holder}))
	require.NoError(t, b.relay.table.Release(t.Context(), held.ID, holder))
	require.NoError(t, <-outcome)
}

// The lock ends after a question is stored and before its asker is in the queue, and somebody else gets the lock. The new holder
// is asked.
func TestTheHolderChangesBeforeTheAskerIsInTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBetween(t)
		held := b.acquire(t, "ann")
		b.before = func() bool {
			e, _, err := b.relay.store.Get(t.Context(), prefix+"r")
			return assert.NoError(t, err) && e.Found()
		}
		b.change = func() {
			assert.NoError(t, b.relay.table.Release(t.Context(), held.ID, "ann"))
			held = b.acquire(t, "cleo")
		}
		b.handsOver(t, "cleo", &held)
	})
}

// The lock is free when the asker looks, and somebody else gets it first. That holder is asked.
func TestSomebodyElseGetsTheFreeLockFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBetween(t)
		txns := 0
		b.before = func() bool { txns++; return txns == 2 } // the first one looks at the lock
		var held locks.Lease
		b.change = func() { held = b.acquire(t, "cleo") }
		b.handsOver(t, "cleo", &held)
	})
}

// A holder asks for the lock that a tab of its own has, and hands it over to the request. Nobody who waits comes in between.
func TestAHolderPassesItsLockOnToItsQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBetween(t)
		held := b.acquire(t, "bob")
		ctx, leave := context.WithCancel(t.Context())
		waiter := make(chan error, 1)
		r := locks.Request{Paths: []locks.Path{locks.Document("r")}, Holder: locks.Holder{ID: "cleo"}, TTL: time.Hour, Wait: time.Hour}
		go func() {
			_, err := b.relay.table.Acquire(ctx, r)
			waiter <- err
		}()
		synctest.Wait()
		r.Holder.ID, r.Wait, r.Exact, r.Replace, r.PassOn = "bob", 0, true, []int64{held.Token}, true
		_, err := b.relay.Ask(t.Context(), r, grace)
		require.NoError(t, err)
		leave()
		if err := <-waiter; err != nil { // otherwise it got the lock before
			require.ErrorIs(t, err, context.Canceled)
		}
	})
}

// The asker's server does not see yet that the lock has ended, and another client waits for it. The asker joins the queue and does not ask the store
// again and again.
func TestAnAskerWhoseServerLagsWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lags atomic.Bool
		var txns atomic.Int64
		seen := make(chan struct{})
		store := memory.New().Client(func(_ context.Context, request string) (_, _ error) {
			switch {
			case !lags.Load():
			case request == "watch":
				<-seen
			case request == "txn" && txns.Add(1) == 100:
				close(seen)
			}
			return nil, nil
		})
		relay := New(store, tableOver(t, store), nil)
		b := &between{relay: relay}
		held := b.acquire(t, "ann")
		r := locks.Request{Paths: []locks.Path{locks.Document("r")}, Holder: locks.Holder{ID: "cleo"}, TTL: time.Hour, Wait: time.Hour}
		ctx, leave := context.WithCancel(t.Context())
		waiter := make(chan error, 1)
		go func() {
			_, err := relay.table.Acquire(ctx, r)
			waiter <- err
		}()
		synctest.Wait()
		lags.Store(true)
		require.NoError(t, relay.table.Release(t.Context(), held.ID, "ann"))
		r.Holder.ID, r.Wait = "bob", 0
		_, err := relay.Ask(t.Context(), r, grace)
		require.Error(t, err)
		assert.Less(t, txns.Load(), int64(20))
		assert.ErrorIs(t, err, locks.ErrTimeout)
		lags.Store(false)
		if txns.Load() < 100 {
			close(seen)
		}
		leave()
		require.ErrorIs(t, <-waiter, context.Canceled)
	})
}
