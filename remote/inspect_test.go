package remote_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/lock/locktest"
	"github.com/holdfast-dev/holdfast/remote"
)

// A tab that holds the lock of this machine and has no answer of the server is a waiter. No page shows it as the holder.
func TestWaiterForSilentServerIsNoHolder(t *testing.T) {
	for name, disturb := range map[string]func(n *internet){
		"silent": func(n *internet) { n.silence(true) },
		"down":   func(n *internet) { n.set(true) },
		"slow": func(n *internet) {
			n.delay = func(r remote.Request) bool {
				if r.Method == "POST" {
					time.Sleep(time.Second)
				}
				return false
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newInternet()
				h := newHousehold(n)
				first, second := h.open(t, "B", "b"), h.open(t, "B", "c")
				disturb(n)
				long := patient
				long.Timeout = time.Hour
				ctx, giveUp := context.WithCancel(t.Context())
				got := []<-chan error{first.begin(ctx, long), second.begin(ctx, long)}
				for _, after := range []time.Duration{500 * time.Millisecond, 20 * time.Second} { // the first attempt, and a place in the queue
					if sleep(after); len(got[0]) > 0 {
						break // the slow server has granted
					}
					for _, who := range []*tab{first, second} {
						holders, waiters, err := who.Inspect(t.Context())
						require.NoError(t, err)
						assert.Empty(t, holders)
						assert.Len(t, waiters, 2)
						for _, w := range waiters {
							assert.Empty(t, w.WaitsFor)
						}
					}
				}
				n.silence(false)
				n.set(false)
				giveUp()
				for _, got := range got {
					if err := <-got; err != nil { // the slow server has granted one
						require.ErrorIs(t, err, lock.ErrAborted)
					}
				}
			})
		})
	}
}

// A tab edits and the server is unreachable: the tab's own report tells that it holds.
func TestHolderIsShownWhileServerIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		h := newHousehold(n)
		first, second := h.open(t, "B", "b"), h.open(t, "B", "c")
		lease := first.acquire(lock.AcquireOptions{})
		waiting := second.begin(t.Context(), patient)
		n.set(true)
		holders, waiters, err := second.Inspect(t.Context())
		require.NoError(t, err)
		require.Len(t, holders, 1)
		assert.Equal(t, lease.ID, holders[0].LeaseID)
		require.Len(t, waiters, 1)
		assert.Equal(t, []string{"b"}, waiters[0].WaitsFor)
		n.set(false)
		first.release(lease)
		require.NoError(t, <-waiting)
	})
}

// The names that a waiter for a place holds on this machine are shown once, as its own.
func TestPlaceThatWaitsForServerIsOneWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		far := open(t, n, locktest.NewSpace(), "A", "a")
		lease := far.acquire(lock.AcquireOptions{})
		here := newHousehold(n).open(t, "B", "b")
		opts := patient
		opts.Path = []string{"chapter"}
		waiting := here.begin(t.Context(), opts)
		sleep(time.Second)
		holders, waiters, err := here.Inspect(t.Context())
		require.NoError(t, err)
		require.Len(t, holders, 1)
		assert.Equal(t, "tab A", holders[0].OwnerID)
		require.Len(t, waiters, 1)
		assert.Equal(t, "b", waiters[0].OwnerID)
		far.release(lease)
		require.NoError(t, <-waiting)
	})
}
