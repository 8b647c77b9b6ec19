package remote_test

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/lock/locktest"
	"github.com/holdfast-dev/holdfast/remote"
)

// Many releases are due when the server answers again, but slowly. The next lock does not expire while they are sent.
func TestReleasesThatAreDueDelayNoLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		a := open(t, n, locktest.NewSpace(), "A", "a")
		var held []lock.Lease
		for i := range 8 {
			held = append(held, a.acquire(at("place", strconv.Itoa(i))))
		}
		n.set(true)
		for _, lease := range held {
			require.ErrorIs(t, lease.Release(t.Context()), lock.ErrReleaseFailed)
		}
		n.set(false)
		n.delay = func(remote.Request) bool { time.Sleep(4 * time.Second); return false }
		began := time.Now()
		next := a.acquire(at("elsewhere"))
		assert.Equal(t, 3*4*time.Second, time.Since(began), "the request, the releases and the first renewal")
		a.release(next)
		assert.Empty(t, n.places())
	})
}
