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

// napping is the clock of a page that was frozen for some time.
type napping struct {
	lock.Clock
	frozen atomic.Int64
}

func (c *napping) Now() lock.Instant {
	now, frozen := c.Clock.Now(), time.Duration(c.frozen.Load())
	return lock.Instant{Wall: now.Wall.Add(frozen), Mono: now.Mono + frozen}
}

// waitsBy lets a page with that clock wait for the project until the end of the test.
func (w *world) waitsBy(clock lock.Clock, b lock.Backend, channel lock.Channel) {
	w.Helper()
	waiter, err := lock.NewManager(lock.Config{OwnerID: "waiter", Clock: clock, Backends: []lock.Backend{b}, Channel: channel})
	require.NoError(w, err)
	w.Cleanup(func() { assert.NoError(w, waiter.Close(context.Background())) })
	go func() { _, _ = waiter.Acquire(w.Context(), patient) }()
}

// besideAFrozenTab returns a holder that shares the project with a frozen tab. Others read the record of the frozen tab, which has the highest
// token.
func (w *world) besideAFrozenTab(channel lock.Channel) (*owner, lock.Lease) {
	w.Helper()
	b := w.backend("holder")
	b.Records = &locktest.Records{}
	holder := w.configured("holder", lock.Config{Backends: []lock.Backend{b}, Channel: channel})
	lease := holder.acquire(lock.AcquireOptions{Mode: lock.Shared})
	w.frozenAs(lock.Shared, 25*time.Second)
	return holder, lease
}

// A waiter is frozen for ten seconds while it reads the record of an earlier holder. The present holder has no record, and is busy for two
// seconds. The time for which the waiter was frozen is no silence of the holder.
func TestShortFreezeOfAWaiterIsNoSilenceOfTheHolder(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		network, busy, clock := locktest.NewNetwork(), new(atomic.Bool), &napping{Clock: w.clock}
		holder, lease := w.besideAnOldRecord(network.JoinBusy(busy))
		w.sleep(8 * time.Second)
		b, freeze := w.backend("waiter"), new(sync.Once)
		b.Records = slowRead{w.records, func() { freeze.Do(func() { clock.frozen.Add(int64(10 * time.Second)) }) }}
		busy.Store(true)
		w.waitsBy(clock, b, network.Join())
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
		holder, lease := w.besideAFrozenTab(network.JoinBusy(busy))
		w.waitsBy(clock, w.backend("waiter"), network.Join())
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
