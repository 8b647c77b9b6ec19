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
