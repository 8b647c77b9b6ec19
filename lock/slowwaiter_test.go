package lock_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/lock/locktest"
)

// A waiter is frozen for ten seconds while it reads the record of an earlier holder. The present holder has no record, and is busy for two
// seconds. The time for which the waiter was frozen is no silence of the holder.
func TestShortFreezeOfAWaiterIsNoSilenceOfTheHolder(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		network, busy, clock := locktest.NewNetwork(), new(atomic.Bool), &napping{Clock: w.clock}
		holder, lease := w.besideAnOldRecord(network.JoinBusy(busy))
		w.sleep(8 * time.Second)
		b, freeze := w.backend("waiter"), new(sync.Once)
		b.Records = slowRead{w.records, func() { freeze.Do(func() { clock.frozen.Add(int64(10 * time.Second)) }) }}
		waiter, err := lock.NewManager(lock.Config{OwnerID: "waiter", Clock: clock, Backends: []lock.Backend{b}, Channel: network.Join()})
		require.NoError(t, err)
		defer func() { assert.NoError(t, waiter.Close(context.Background())) }()
		busy.Store(true)
		go func() { _, _ = waiter.Acquire(t.Context(), patient) }()
		w.sleep(2 * time.Second)
		busy.Store(false)
		w.sleep(time.Minute)
		require.NoError(t, lease.Err())
		holder.release(lease)
	})
}

type slowRead struct {
	lock.Records
	before func()
}

func (r slowRead) Read(ctx context.Context, resource string) (lock.Record, bool, error) {
	r.before()
	return r.Records.Read(ctx, resource)
}

// Two tabs hold the project shared, and one of them is frozen. The other one is busy before and after a freeze of the waiter. The silence before the
// freeze does not count: the holder has renewed its lease since.
func TestSilenceBeforeAFreezeOfTheWaiterDoesNotCount(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		network, busy, clock := locktest.NewNetwork(), new(atomic.Bool), &napping{Clock: w.clock}
		b := w.backend("holder")
		b.Records = &locktest.Records{} // others read the record of the frozen tab
		holder := w.configured("holder", lock.Config{Backends: []lock.Backend{b}, Channel: network.JoinBusy(busy)})
		lease := holder.acquire(lock.AcquireOptions{Mode: lock.Shared})
		w.frozenAs(lock.Shared, 25*time.Second)
		waiter, err := lock.NewManager(lock.Config{OwnerID: "waiter", Clock: clock, Backends: []lock.Backend{w.backend("waiter")}, Channel: network.Join()})
		require.NoError(t, err)
		defer func() { assert.NoError(t, waiter.Close(context.Background())) }()
		go func() { _, _ = waiter.Acquire(t.Context(), patient) }()
		w.sleep(24 * time.Second)
		busy.Store(true)
		w.sleep(27 * time.Second)
		busy.Store(false)
		clock.frozen.Add(int64(time.Hour))
		w.sleep(4 * time.Second)
		busy.Store(true)
		w.sleep(7 * time.Second)
		busy.Store(false)
		w.sleep(time.Minute)
		require.NoError(t, lease.Err())
		holder.release(lease)
	})
}
