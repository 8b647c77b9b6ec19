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
)

// A tab that has stolen the lock of this machine, by force or from a frozen tab, lives while it waits for another
// machine: the tabs that wait behind it steal nothing from it.
func TestThiefThatWaitsForServerIsNotTakenOver(t *testing.T) {
	for name, forced := range map[string]bool{"by force": true, "from a frozen tab": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newInternet()
				other := open(t, n, locktest.NewSpace(), "A", "a")
				far := other.acquire(lock.AcquireOptions{})
				h := newHousehold(n)
				if !forced {
					h.freeze(t)
				}
				thief := patient
				thief.Timeout, thief.Steal = 24*time.Hour, forced
				first := h.open(t, "B", "b").begin(context.Background(), thief)
				sleep(40 * time.Second)
				second := h.open(t, "B", "c").begin(context.Background(), lock.AcquireOptions{Timeout: 24 * time.Hour, Backoff: patient.Backoff})
				sleep(time.Minute)
				require.Empty(t, first)
				other.release(far)
				require.NoError(t, <-first, "the first in line gets the lock first")
				assert.Empty(t, second)
			})
		})
	}
}
