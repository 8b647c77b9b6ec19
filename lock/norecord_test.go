package lock_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/lock/locktest"
)

// besideAnOldRecord returns a holder that could write no record, beside the record of an earlier holder, and its lease.
func (w *world) besideAnOldRecord(channel lock.Channel) (*owner, lock.Lease) {
	w.Helper()
	gone, _ := w.frozen(time.Second)
	require.NoError(w, gone.Release(w.Context()))
	w.records.OnClaim = func(lock.Record) error { return errors.New("the disk is full") }
	holder := w.withFallback("holder", channel)
	return holder, holder.acquire(lock.AcquireOptions{})
}

// The holder could write no record of its own, and the record of an earlier holder is still there. Its lock is stolen only if it is silent
// for its TTL, however often it is busy for a few seconds.
func TestBusyHolderBesideAnOldRecordKeepsItsLock(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		network, busy := locktest.NewNetwork(), new(atomic.Bool)
		_, lease := w.besideAnOldRecord(network.JoinBusy(busy))
		waiting := w.withFallback("waiter", network.Join()).begin(t.Context(), patient)
		w.sleep(8 * time.Second)
		for range 60 {
			busy.Store(true)
			w.sleep(4 * time.Second)
			busy.Store(false)
			w.sleep(3 * time.Second)
			require.NoError(t, lease.Err())
		}
		busy.Store(true)
		begun := time.Since(w.start)
		got := <-waiting
		require.NoError(t, got.err)
		between(t, begun+lock.DefaultTTL-10*time.Second, got.at, begun+lock.DefaultTTL+10*time.Second)
		assert.ErrorIs(t, lease.Err(), lock.ErrLost)
		require.NoError(t, got.lease.Release(t.Context()))
	})
}

// A holder is silent when a waiter finds it frozen. It answers again before the waiter has the turn to steal.
func TestHolderThatWakesBeforeTheStealKeepsItsLock(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		network, busy := locktest.NewNetwork(), new(atomic.Bool)
		holder, lease := w.besideAnOldRecord(network.JoinBusy(busy))
		w.sleep(8 * time.Second)
		busy.Store(true)
		turn, err := w.space.Client("another waiter").Request(t.Context(), lock.Request{Wants: []lock.Want{{Name: "project takeover", Mode: lock.Exclusive}}})
		require.NoError(t, err)
		waiting := w.withFallback("waiter", network.Join()).begin(t.Context(), patient)
		w.sleep(3 * time.Second)
		busy.Store(false)
		require.NoError(t, turn.Release(t.Context()))
		w.sleep(time.Minute)
		require.NoError(t, lease.Err())
		holder.release(lease)
		got := <-waiting
		require.NoError(t, got.err)
		require.NoError(t, got.lease.Release(t.Context()))
	})
}

// The holder without a record has a longer TTL than usual. Its lock is stolen only if it is silent for that TTL.
func TestHolderBesideAnOldRecordKeepsItsLockWithinItsTTL(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		network, busy := locktest.NewNetwork(), new(atomic.Bool)
		gone, _ := w.frozen(time.Second)
		require.NoError(t, gone.Release(t.Context()))
		w.records.OnClaim = func(lock.Record) error { return errors.New("the disk is full") }
		const ttl = 2 * time.Minute
		lease := w.withFallback("holder", network.JoinBusy(busy)).acquire(lock.AcquireOptions{TTL: ttl, HeartbeatInterval: time.Minute})
		waiting := w.withFallback("waiter", network.Join()).begin(t.Context(), patient)
		w.sleep(61 * time.Second)
		busy.Store(true) // it has just renewed its lease
		begun := time.Since(w.start)
		w.sleep(ttl - time.Second)
		require.NoError(t, lease.Err())
		got := <-waiting
		require.NoError(t, got.err)
		between(t, begun+ttl-10*time.Second, got.at, begun+ttl+10*time.Second)
		assert.ErrorIs(t, lease.Err(), lock.ErrLost)
		require.NoError(t, got.lease.Release(t.Context()))
	})
}

// A waiter arrives while the holder beside the old record is busy for a few seconds.
func TestBusyHolderBesideAnOldRecordKeepsItsLockFromANewWaiter(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		network, busy := locktest.NewNetwork(), new(atomic.Bool)
		holder, lease := w.besideAnOldRecord(network.JoinBusy(busy))
		w.sleep(8 * time.Second)
		busy.Store(true)
		waiting := w.withFallback("waiter", network.Join()).begin(t.Context(), patient)
		w.sleep(4 * time.Second)
		busy.Store(false)
		w.sleep(time.Minute)
		require.NoError(t, lease.Err())
		holder.release(lease)
		got := <-waiting
		require.NoError(t, got.err)
		require.NoError(t, got.lease.Release(t.Context()))
	})
}

// A waiter that arrives when a frozen holder's record has expired asks for a few seconds, and then takes over.
func TestLateWaiterTakesOverFromAFrozenHolder(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		victim, _ := w.frozen(5 * time.Second)
		w.sleep(time.Minute)
		got := <-w.withFallback("waiter", locktest.NewNetwork().Join()).begin(t.Context(), patient)
		require.NoError(t, got.err)
		between(t, time.Minute+5*time.Second, got.at, time.Minute+7*time.Second)
		assert.True(t, isLost(victim))
		require.NoError(t, got.lease.Release(t.Context()))
	})
}

// Two tabs hold the project shared, and both are frozen. A waiter takes over when nobody has answered for another TTL: it reads the record
// of one of them only.
func TestFrozenSharedHoldersAreTakenOver(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		_, err := w.space.Client("another").Request(t.Context(), lock.Request{Wants: []lock.Want{{Name: "project", Mode: lock.Shared}}})
		require.NoError(t, err)
		victim, _ := w.frozenAs(lock.Shared, 25*time.Second)
		got := <-w.talking("waiter", locktest.NewNetwork().Join()).begin(t.Context(), patient)
		require.NoError(t, got.err)
		between(t, 50*time.Second, got.at, 57*time.Second)
		assert.True(t, isLost(victim))
		require.NoError(t, got.lease.Release(t.Context()))
	})
}

// A waiter for the project arrives while the holder of a place in it is busy for a few seconds, beside the record of an earlier holder of the
// project. The holder of a place has no record.
func TestBusyHolderOfAPlaceBesideAnOldRecordKeepsItsLock(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		gone, _ := w.frozen(time.Second)
		require.NoError(t, gone.Release(t.Context()))
		network, busy := locktest.NewNetwork(), new(atomic.Bool)
		holder := w.withFallback("holder", network.JoinBusy(busy))
		place := holder.acquire(lock.AcquireOptions{Path: []string{"u1"}})
		w.sleep(8 * time.Second)
		busy.Store(true)
		waiting := w.withFallback("waiter", network.Join()).begin(t.Context(), patient)
		w.sleep(4 * time.Second)
		busy.Store(false)
		w.sleep(time.Minute)
		require.NoError(t, place.Err())
		holder.release(place)
		got := <-waiting
		require.NoError(t, got.err)
		require.NoError(t, got.lease.Release(t.Context()))
	})
}

// Two tabs hold the project shared, and one of them is frozen. Its record is the one that others read. The other tab renews its
// lease and is busy for a few seconds when that record expires.
func TestBusySharedHolderBesideAFrozenOneKeepsItsLock(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		network, busy := locktest.NewNetwork(), new(atomic.Bool)
		b := w.backend("holder")
		b.Records = &locktest.Records{} // others read the record with the highest token, which is that of the frozen tab
		holder := w.configured("holder", lock.Config{Backends: []lock.Backend{b}, Channel: network.JoinBusy(busy)})
		lease := holder.acquire(lock.AcquireOptions{Mode: lock.Shared})
		w.frozenAs(lock.Shared, 25*time.Second)
		waiting := w.talking("waiter", network.Join()).begin(t.Context(), patient)
		w.sleep(24 * time.Second)
		busy.Store(true)
		w.sleep(4 * time.Second)
		busy.Store(false)
		w.sleep(time.Minute)
		require.NoError(t, lease.Err())
		assert.Empty(t, waiting)
		w.space.Kill("frozen")
		holder.release(lease)
		require.NoError(t, (<-waiting).err)
	})
}

// A tab holds the project shared with a short TTL, and is frozen. Another tab holds a place in it, which has no record, with the usual TTL, and is
// busy for four seconds. It keeps its lock.
func TestBusyHolderOfAPlaceBesideAFrozenShortLeaseKeepsItsLock(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		network, busy := locktest.NewNetwork(), new(atomic.Bool)
		holder := w.withFallback("holder", network.JoinBusy(busy))
		place := holder.acquire(lock.AcquireOptions{Path: []string{"u1"}})
		w.frozenAs(lock.Shared, 3*time.Second)
		waiting := w.withFallback("waiter", network.Join()).begin(t.Context(), patient)
		w.sleep(3 * time.Second)
		busy.Store(true)
		w.sleep(4 * time.Second)
		busy.Store(false)
		w.sleep(time.Minute)
		require.NoError(t, place.Err())
		w.space.Kill("frozen")
		holder.release(place)
		got := <-waiting
		require.NoError(t, got.err)
		require.NoError(t, got.lease.Release(t.Context()))
	})
}

// A holder could write no record, beside the record of an earlier holder that is still valid. A waiter sees that record expire. Its lock is not
// stolen while the holder is busy for two seconds.
func TestBusyHolderBesideAValidOldRecordKeepsItsLock(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		gone, _ := w.frozen(20 * time.Second)
		require.NoError(t, gone.Release(t.Context()))
		w.records.OnClaim = func(lock.Record) error { return errors.New("the disk is full") }
		network, busy := locktest.NewNetwork(), new(atomic.Bool)
		holder := w.withFallback("holder", network.JoinBusy(busy))
		lease := holder.acquire(lock.AcquireOptions{})
		waiting := w.withFallback("waiter", network.Join()).begin(t.Context(), patient)
		w.sleep(20 * time.Second)
		busy.Store(true)
		w.sleep(2 * time.Second)
		busy.Store(false)
		w.sleep(time.Minute)
		require.NoError(t, lease.Err())
		holder.release(lease)
		got := <-waiting
		require.NoError(t, got.err)
		require.NoError(t, got.lease.Release(t.Context()))
	})
}
