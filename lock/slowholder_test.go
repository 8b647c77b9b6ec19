package lock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/lock/locktest"
)

// The holder is so busy that it answers each question a second later. A waiter reads the record of an earlier holder, and steals nothing.
func TestSlowHolderBesideAnOldRecordKeepsItsLock(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		network := locktest.NewNetwork()
		holder, lease := w.besideAnOldRecord(locktest.Late(network.Join(), time.Second))
		w.sleep(8 * time.Second)
		waiting := w.withFallback("waiter", network.Join()).begin(t.Context(), patient)
		w.sleep(5 * time.Minute)
		require.NoError(t, lease.Err())
		holder.release(lease)
		got := <-waiting
		require.NoError(t, got.err)
		require.NoError(t, got.lease.Release(t.Context()))
	})
}

// Two tabs hold the project shared, and one of them is frozen. The other one is busy when the waiter asks, and again after the waiter was
// frozen itself for a minute. That minute is no silence of the holder.
func TestFreezeOfAWaiterIsNoSilenceOfTheHolder(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		network, busy, clock := locktest.NewNetwork(), new(atomic.Bool), &napping{Clock: w.clock}
		holder, lease := w.besideAFrozenTab(network.JoinBusy(busy))
		w.waitsBy(clock, w.backend("waiter"), network.Join())
		for range 3 {
			w.sleep(24 * time.Second)
			busy.Store(true)
			w.sleep(3 * time.Second)
			clock.frozen.Add(int64(time.Minute))
			w.sleep(4 * time.Second)
			busy.Store(false)
			require.NoError(t, lease.Err())
		}
		holder.release(lease)
	})
}

// The record of a holder with a long TTL cannot be read. Its lock is stolen only if it is silent for that TTL, which it has named in an answer.
func TestHolderWithAnUnreadableRecordKeepsItsLockWithinItsTTL(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		network, busy := locktest.NewNetwork(), new(atomic.Bool)
		const ttl = 2 * time.Minute
		holder := w.withFallback("holder", network.JoinBusy(busy))
		lease := holder.acquire(lock.AcquireOptions{TTL: ttl, HeartbeatInterval: time.Minute})
		w.sleep(59 * time.Second)
		wake := w.records.Open()
		defer func() { wake() }()
		waiting := w.withFallback("waiter", network.Join()).begin(t.Context(), patient)
		w.sleep(4 * time.Second)
		busy.Store(true)
		w.sleep(50 * time.Second)
		require.NoError(t, lease.Err())
		wake()
		wake = func() {}
		busy.Store(false)
		holder.release(lease)
		require.NoError(t, (<-waiting).err)
	})
}

// failing are Records whose reads fail after they were made.
type failing struct {
	lock.Records
	fail atomic.Bool
}

func (f *failing) Read(ctx context.Context, resource string) (r lock.Record, ok bool, err error) {
	r, ok, err = f.Records.Read(ctx, resource)
	if f.fail.Load() {
		err = errors.New("the storage fails")
	}
	return r, ok, err
}

// A waiter has seen the record valid. Then it cannot read it for a moment, while the holder is busy: the record counts as valid.
func TestBusyHolderKeepsItsLockWhileItsRecordCannotBeRead(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		network, busy := locktest.NewNetwork(), new(atomic.Bool)
		holder := w.withFallback("holder", network.JoinBusy(busy))
		lease := holder.acquire(lock.AcquireOptions{})
		b := w.backend("waiter")
		records := &failing{Records: b.Records}
		b.Records = records
		waiting := w.configured("waiter", lock.Config{Backends: []lock.Backend{b}, Channel: network.Join()}).begin(t.Context(), patient)
		w.sleep(10 * time.Second)
		records.fail.Store(true)
		busy.Store(true)
		w.sleep(15 * time.Second)
		records.fail.Store(false)
		busy.Store(false)
		w.sleep(time.Minute)
		require.NoError(t, lease.Err())
		holder.release(lease)
		require.NoError(t, (<-waiting).err)
	})
}
