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

// busyChannel receives nothing while its owner is busy.
type busyChannel struct {
	lock.Channel
	busy *atomic.Bool
}

func (b busyChannel) Listen(handle func(lock.Message)) (func(), error) {
	return b.Channel.Listen(func(m lock.Message) {
		if !b.busy.Load() {
			handle(m)
		}
	})
}

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
		_, lease := w.besideAnOldRecord(busyChannel{network.Join(), busy})
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
		holder, lease := w.besideAnOldRecord(busyChannel{network.Join(), busy})
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
		lease := w.withFallback("holder", busyChannel{network.Join(), busy}).acquire(lock.AcquireOptions{TTL: ttl, HeartbeatInterval: time.Minute})
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
