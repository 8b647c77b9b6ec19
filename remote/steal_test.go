package remote_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/lock/locktest"
	"github.com/holdfast-dev/holdfast/remote"
)

// A tab that has stolen the lock of this machine, by force or from a frozen tab, lives while it waits for another
// machine: the tabs that wait behind it steal nothing from it.
func TestStealerThatWaitsForServerIsNotTakenOver(t *testing.T) {
	for name, forced := range map[string]bool{"by force": true, "from a frozen tab": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, release := behindAnotherMachine(t)
				if !forced {
					h.freeze(t)
				}
				stealer := patient
				stealer.Timeout, stealer.Steal = 24*time.Hour, forced
				first := h.open(t, "B", "b").begin(context.Background(), stealer)
				sleep(40 * time.Second)
				second := h.open(t, "B", "c").begin(context.Background(), lock.AcquireOptions{Timeout: 24 * time.Hour, Backoff: patient.Backoff})
				sleep(time.Minute)
				require.Empty(t, first)
				release()
				require.NoError(t, <-first, "the first in line gets the lock first")
				assert.Empty(t, second)
			})
		})
	}
}

// A place that is stolen from a living tab passes to the stealer on the server, too, before the other machines that wait
// for it.
func TestStolenPlacePassesToTheStealer(t *testing.T) {
	for name, opts := range map[string]lock.AcquireOptions{"document": {}, "place": at("x")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, space := newInternet(), locktest.NewSpace()
				n.delay = func(remote.Request) bool { time.Sleep(10 * time.Millisecond); return false }
				victim, stealer, other := open(t, n, space, "A", "a"), open(t, n, space, "A", "b"), open(t, n, locktest.NewSpace(), "B", "other")
				stolen := victim.acquire(opts)
				waiting := other.begin(context.Background(), waits(opts))
				sleep(time.Second)
				steal := waits(opts)
				steal.Steal, steal.Timeout = true, time.Minute
				lease, err := stealer.Acquire(context.Background(), steal)
				require.NoError(t, err)
				require.ErrorIs(t, stolen.Err(), lock.ErrLost)
				assert.Empty(t, waiting, "it waits behind the stealer")
				stealer.release(lease)
				require.NoError(t, <-waiting)
			})
		})
	}
}

// A tab steals the lock of this machine and gives up before the server learns of it. The lease of the tab that it stole from ends on the server
// soon, so that another machine need not wait for its TTL.
func TestStealerThatGivesUpLeavesNoLeaseOnTheServer(t *testing.T) {
	for name, opts := range map[string]lock.AcquireOptions{"document": {}, "place": at("x")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, space := newInternet(), locktest.NewSpace()
				var slow atomic.Bool
				n.delay = func(r remote.Request) bool {
					if slow.Load() && r.Method == "POST" {
						time.Sleep(time.Second) // the stealer gives up meanwhile
					}
					return false
				}
				victim, stealer, other := open(t, n, space, "A", "a"), open(t, n, space, "A", "b"), open(t, n, locktest.NewSpace(), "B", "other")
				stolen := victim.acquire(opts)
				waiting := other.begin(context.Background(), waits(opts))
				sleep(time.Second)
				slow.Store(true)
				steal := waits(opts)
				steal.Steal, steal.Timeout = true, time.Millisecond
				_, err := stealer.Acquire(context.Background(), steal)
				require.ErrorIs(t, err, lock.ErrTimeout)
				require.ErrorIs(t, stolen.Err(), lock.ErrLost)
				sleep(10 * time.Second)
				require.Len(t, waiting, 1, "the server keeps a lease that nobody has")
				require.NoError(t, <-waiting)
			})
		})
	}
}
