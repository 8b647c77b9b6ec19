package remote_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/lock/locktest"
)

// local is the lock of this machine for a tab that goes on without a record if it cannot write one.
func (h *fullBrowser) local(id string) lock.Backend {
	return lock.Backend{Strategy: lock.WebLock, Resource: "holdfast:project", Locker: h.space.Client(id),
		Records: lock.WithFallback(h.records, &lock.WallTokens{Clock: lock.SystemClock{}}, nil)}
}

// openWithoutServer opens a tab of the same project without a server.
func (h *fullBrowser) openWithoutServer(t *testing.T, id string) *tab {
	m, err := lock.NewManager(lock.Config{OwnerID: id, Backends: []lock.Backend{h.local(id)}, Channel: h.network.Join()})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, m.Close(context.Background())) })
	return &tab{Manager: m, t: t}
}

// A tab with a server waits for the project. A tab without one holds a place in it, for which there is no record, and answers under other
// names than those of the server.
func TestHolderOfAPlaceWithoutServerKeepsItsLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHousehold(newInternet())
		holder := h.openWithoutServer(t, "holder")
		place := holder.acquire(lock.AcquireOptions{Path: []string{"u1"}})
		waiting := h.open(t, "B", "waiter").begin(t.Context(), patient)
		sleep(2 * time.Minute)
		require.NoError(t, place.Err())
		holder.release(place)
		require.NoError(t, <-waiting)
	})
}

// A tab without a server waits for the project, and finds the expired record of a tab that is gone. A tab with a server holds the project
// without a record, and answers under the names of the server.
func TestHolderWithServerBesideAnOldRecordKeepsItsLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHousehold(newInternet())
		_, err := h.records.Claim(t.Context(), lock.Record{Resource: "holdfast:project", LeaseID: "of the gone", AcquiredAt: time.Now(),
			ExpiresAt: time.Now().Add(time.Second), TTL: time.Second, Mode: lock.Exclusive}, false)
		require.NoError(t, err)
		h.records.OnClaim = func(lock.Record) error { return errors.New("the disk is full") }
		holder := h.openOver(t, "A", "holder", h.local("holder"))
		lease := holder.acquire(lock.AcquireOptions{})
		sleep(2 * time.Second)
		waiting := h.openWithoutServer(t, "waiter").begin(t.Context(), patient)
		sleep(2 * time.Minute)
		require.NoError(t, lease.Err())
		holder.release(lease)
		require.NoError(t, <-waiting)
	})
}

// A tab holds a place, for which there is no record, with a longer TTL than usual. Its lock is stolen only if it is silent for that TTL.
func TestHolderOfAPlaceKeepsItsLockWithinItsTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, busy := newHousehold(newInternet()), new(atomic.Bool)
		m, err := lock.NewManager(lock.Config{OwnerID: "holder", Backends: []lock.Backend{h.local("holder")}, Channel: h.network.JoinBusy(busy)})
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, m.Close(context.Background())) })
		const ttl = 2 * time.Minute
		place, err := m.Acquire(t.Context(), lock.AcquireOptions{Path: []string{"u1"}, TTL: ttl, HeartbeatInterval: time.Minute})
		require.NoError(t, err)
		waiting := h.open(t, "B", "waiter").begin(t.Context(), patient)
		sleep(61 * time.Second)
		busy.Store(true) // it has just renewed its lease
		sleep(ttl - time.Second)
		require.NoError(t, place.Err())
		sleep(20 * time.Second)
		require.NoError(t, <-waiting)
		assert.ErrorIs(t, place.Err(), lock.ErrLost)
	})
}

// A tab holds a place, for which there is no record, and is so busy that it answers each question seconds later. A tab with a server that waits
// for the project steals nothing from it.
func TestSlowHolderOfAPlaceKeepsItsLock(t *testing.T) {
	for _, late := range []time.Duration{time.Second, 7 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			h := newHousehold(newInternet())
			m, err := lock.NewManager(lock.Config{OwnerID: "holder", Backends: []lock.Backend{h.local("holder")}, Channel: locktest.Late(h.network.Join(), late)})
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, m.Close(context.Background())) })
			place, err := m.Acquire(t.Context(), lock.AcquireOptions{Path: []string{"u1"}})
			require.NoError(t, err)
			waiting := h.open(t, "B", "waiter").begin(t.Context(), patient)
			sleep(5 * time.Minute)
			require.NoError(t, place.Err(), late)
			require.NoError(t, place.Release(t.Context()))
			require.NoError(t, <-waiting)
		})
	}
}

// Two tabs hold places, for which there are no records. A tab that waits for the project learns the TTLs of both: the one with the longer TTL keeps
// its lock for that TTL after the other one has left.
func TestEachHolderOfAPlaceKeepsItsLockWithinItsTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, busy := newHousehold(newInternet()), new(atomic.Bool)
		first := h.openWithoutServer(t, "first")
		other := first.acquire(lock.AcquireOptions{Path: []string{"u1"}})
		m, err := lock.NewManager(lock.Config{OwnerID: "holder", Backends: []lock.Backend{h.local("holder")}, Channel: locktest.Late(h.network.JoinBusy(busy), 100*time.Millisecond)})
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, m.Close(context.Background())) })
		const ttl = 2 * time.Minute
		place, err := m.Acquire(t.Context(), lock.AcquireOptions{Path: []string{"u2"}, TTL: ttl, HeartbeatInterval: time.Minute})
		require.NoError(t, err)
		waiting := h.open(t, "B", "waiter").begin(t.Context(), patient)
		sleep(61 * time.Second)
		busy.Store(true) // it has just renewed its lease
		first.release(other)
		sleep(ttl - 10*time.Second)
		require.NoError(t, place.Err())
		sleep(30 * time.Second)
		require.NoError(t, <-waiting)
	})
}
