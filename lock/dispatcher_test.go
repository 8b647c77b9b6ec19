package lock_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/lock"
)

// churn makes a dozen events.
func (o *owner) churn() {
	o.w.Helper()
	for range 3 {
		o.release(o.acquire(lock.AcquireOptions{}))
	}
}

func TestListenersSeeOneOrder(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		var seen [4][]lock.Event
		for i := range seen {
			a.Subscribe(func(e lock.Event) { seen[i] = append(seen[i], e) })
		}
		// Shared leases of one owner make events on goroutines of their own.
		for range 10 {
			go func() {
				lease, err := a.Acquire(t.Context(), lock.AcquireOptions{Mode: lock.Shared})
				if assert.NoError(t, err) {
					assert.NoError(t, lease.Release(t.Context()))
				}
			}()
		}
		w.mustBeFree()
		require.NoError(t, a.FlushEvents(t.Context()))
		require.Len(t, seen[0], 50)
		for _, other := range seen[1:] {
			assert.Equal(t, seen[0], other)
		}
	})
}

func TestListenersThatPanicOrBlockDoNotAffectOthers(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		calls := 0
		a.Subscribe(func(lock.Event) { calls++; panic("listener") })
		blocked := make(chan struct{})
		var unblocked atomic.Int64
		a.Subscribe(func(lock.Event) { <-blocked; unblocked.Add(1) })
		_, err := a.Acquire(t.Context(), lock.AcquireOptions{OnReadonly: func(lock.Event) { panic("readonly") }})
		require.NoError(t, err)
		w.sleep(9 * time.Second)
		w.clock.Sleep(time.Hour)
		w.sleep(time.Second)
		assert.Len(t, a.seen(), 5)
		assert.Equal(t, 5, calls)

		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		assert.ErrorIs(t, a.FlushEvents(ctx), context.DeadlineExceeded, "one listener has seen nothing yet")
		assert.Zero(t, unblocked.Load())
		close(blocked)
		require.NoError(t, a.FlushEvents(t.Context()))
		assert.EqualValues(t, 5, unblocked.Load())
	})
}

func TestUnsubscribe(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		calls := 0
		var unsubscribe func()
		unsubscribe = a.Subscribe(func(lock.Event) {
			calls++
			unsubscribe()
			unsubscribe()
		})
		a.churn()
		require.NoError(t, a.FlushEvents(t.Context()))
		assert.Equal(t, 1, calls, "queued events are not handled after unsubscribing")
		assert.Len(t, a.seen(), 15)
	})
}

func TestListenersMayCallTheManager(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		inner := 0
		a.Subscribe(func(e lock.Event) {
			switch e.Type {
			case lock.EventAcquired:
				a.Subscribe(func(lock.Event) { inner++ })
				assert.Len(t, a.Leases(), 1)
				assert.NoError(t, e.Lease.Release(t.Context()))
			}
		})
		a.acquire(lock.AcquireOptions{})
		w.mustBeFree()
		assert.NotZero(t, inner)
		assert.Equal(t, lock.EventReleased, a.last().Type)
	})
}

func TestCloseDeliversWhatWasEmitted(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		slow := 0
		a.Subscribe(func(lock.Event) { time.Sleep(time.Minute); slow++ })
		a.acquire(lock.AcquireOptions{})
		require.NoError(t, a.Close(t.Context()))
		assert.Equal(t, 5, slow)
		assert.Equal(t, 5*time.Minute, time.Since(w.start))
		a.Subscribe(func(lock.Event) { t.Error("subscribed after the end") })()
		require.NoError(t, a.FlushEvents(t.Context()))
	})
}

func TestCloseReturnsWhenItsContextEnds(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		blocked := make(chan struct{})
		a.Subscribe(func(lock.Event) { <-blocked })
		a.acquire(lock.AcquireOptions{})
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		require.ErrorIs(t, a.Close(ctx), context.DeadlineExceeded)
		w.mustBeFree()
		close(blocked)
		synctest.Wait()
	})
}

// A listener of all events gets them in the order of the other listeners, none twice, and in one call as many as have
// arrived meanwhile. A mark comes after the events that were emitted before it.
func TestSubscribeAll(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		m := w.tab("a")
		var batches [][]lock.Event
		first, goOn := make(chan struct{}, 1), make(chan struct{})
		m.SubscribeAll(func(events []lock.Event) {
			batches = append(batches, slices.Clone(events))
			if len(batches) == 1 {
				first <- struct{}{}
				<-goOn
			}
		})
		lease := m.acquire(lock.AcquireOptions{})
		<-first
		m.release(lease)
		close(goOn)
		require.NoError(t, m.FlushEvents(t.Context()))
		assert.Len(t, batches, 2, "events that arrive while it is busy come as one batch")
		assert.Equal(t, m.seen(), slices.Concat(batches...))
	})
}
