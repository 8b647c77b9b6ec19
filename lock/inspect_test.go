package lock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/lock/locktest"
)

// talking joins an owner that receives and sends messages.
func (w *world) talking(id string, c *locktest.Channel) *owner {
	w.Helper()
	return w.configured(id, lock.Config{Backends: []lock.Backend{w.backend(id)}, Channel: c})
}

func TestInspectShowsHoldersAndWaiters(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		network := locktest.NewNetwork()
		a, b, c := w.talking("a", network.Join()), w.talking("b", network.Join()), w.talking("c", network.Join())
		lease := a.acquire(lock.AcquireOptions{})
		w.sleep(time.Second)
		waitB := b.begin(t.Context(), lock.AcquireOptions{LeaseID: "lease b", Backoff: lock.Backoff{MaxRetries: lock.Unlimited}})
		w.sleep(time.Second)
		ctx, giveUp := context.WithCancel(t.Context())
		waitC := c.begin(ctx, lock.AcquireOptions{LeaseID: "lease c", Mode: lock.Shared, Backoff: lock.Backoff{MaxRetries: lock.Unlimited}})
		began := time.Now()
		for _, who := range []*owner{a, b, c} {
			holders, waiters, err := who.Inspect(t.Context())
			require.NoError(t, err)
			require.Len(t, holders, 1)
			assert.Equal(t, lease.ID, holders[0].LeaseID)
			assert.Equal(t, "tab a", holders[0].OwnerName)
			assert.Equal(t, lease.Token, holders[0].Token)
			assert.Equal(t, w.start, holders[0].Since)
			assert.Equal(t, []lock.Waiter{
				{Resource: "project", Mode: lock.Exclusive, OwnerID: "b", OwnerName: "tab b", LeaseID: "lease b", Since: w.start.Add(time.Second),
					Paths: [][]string{{}}, Awaits: []lock.Want{{Name: "project", Mode: lock.Exclusive}}, WaitsFor: []string{"a"}},
				{Resource: "project", Mode: lock.Shared, OwnerID: "c", OwnerName: "tab c", LeaseID: "lease c", Since: w.start.Add(2 * time.Second),
					Paths: [][]string{{}}, Awaits: []lock.Want{{Name: "project", Mode: lock.Shared}}, WaitsFor: []string{"a"}},
			}, waiters)
		}
		assert.Zero(t, time.Since(began), "no request had to wait")
		giveUp()
		<-waitC
		synctest.Wait() // the Locker learns of it after the caller has its answer
		a.release(lease)
		b.release((<-waitB).lease)
		holders, waiters, err := c.Inspect(t.Context())
		require.NoError(t, err)
		assert.Empty(t, holders)
		assert.Empty(t, waiters)
	})
}

func TestInspectShowsSilentOwners(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		network := locktest.NewNetwork()
		frozen := network.Join()
		frozen.Deaf = true
		lease := w.talking("frozen", frozen).acquire(lock.AcquireOptions{})
		holders, _, err := w.talking("b", network.Join()).Inspect(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []lock.Holder{{Resource: "project", Mode: lock.Exclusive, Strategy: lock.WebLock, OwnerID: "frozen",
			Wants: []lock.Want{{Name: "project", Mode: lock.Exclusive}}}}, holders)
		require.NoError(t, lease.Release(t.Context()))
	})
}

func TestInspectWithoutChannel(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		lease := a.acquire(lock.AcquireOptions{})
		own, _, err := a.Inspect(t.Context())
		require.NoError(t, err)
		require.Len(t, own, 1)
		assert.Equal(t, lease.ID, own[0].LeaseID)
		other, _, err := w.tab("b").Inspect(t.Context())
		require.NoError(t, err)
		require.Len(t, other, 1)
		assert.Equal(t, "a", other[0].OwnerID)
		a.release(lease)
	})
}
