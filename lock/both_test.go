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

// twoSpaces returns clients that hold every name in both of two spaces.
func twoSpaces(*testing.T) func() lock.Locker {
	first, second := locktest.NewSpace(), locktest.NewSpace()
	return func() lock.Locker {
		id := lock.NewID()
		return lock.Both(first.Client(id), second.Client(id))
	}
}

func TestBoth(t *testing.T) { locktest.RunLocker(t, twoSpaces) }

func TestTreeOverBoth(t *testing.T) { locktest.RunTree(t, twoSpaces) }

// Clients of Both and of each Locker alone exclude each other, in the queue too.
func TestBothExcludesClientsOfEither(t *testing.T) {
	one := lock.Request{Wants: []lock.Want{{Name: "n", Mode: lock.Exclusive}}}
	for _, side := range []string{"first", "second"} {
		t.Run(side, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first, second := locktest.NewSpace(), locktest.NewSpace()
				alone := map[string]lock.Locker{"first": first.Client("alone"), "second": second.Client("alone")}[side]
				both := lock.Both(first.Client("both"), second.Client("both"))

				holder, err := alone.Request(t.Context(), one)
				require.NoError(t, err)
				try := one
				try.IfAvailable = true
				_, err = both.Request(t.Context(), try)
				require.ErrorIs(t, err, lock.ErrDenied)
				granted := make(chan lock.Grant)
				go func() {
					g, err := both.Request(t.Context(), one)
					assert.NoError(t, err)
					granted <- g
				}()
				synctest.Wait()
				s, err := both.Query(t.Context())
				require.NoError(t, err)
				assert.Len(t, append(s.Held, s.Pending...), 2, "each comes once")
				require.NoError(t, holder.Release(t.Context()))
				g := <-granted
				_, err = alone.Request(t.Context(), try)
				require.ErrorIs(t, err, lock.ErrDenied)
				require.NoError(t, g.Release(t.Context()))
			})
		})
	}
}

// A client whose lock in first is stolen while it waits in second gets the grant, and the grant is lost: it does not
// wait on.
func TestGrantOfBothStolenBetweenLockers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := lock.Request{Wants: []lock.Want{{Name: "n", Mode: lock.Exclusive}}}
		steal := one
		steal.Steal = true
		first, second := locktest.NewSpace(), locktest.NewSpace()
		blockers, err := second.Client("old").Request(t.Context(), one)
		require.NoError(t, err)
		granted := make(chan lock.Grant)
		go func() {
			g, err := lock.Both(first.Client("both"), second.Client("both")).Request(t.Context(), one)
			assert.NoError(t, err)
			granted <- g
		}()
		synctest.Wait()
		stealer, err := first.Client("stealer").Request(t.Context(), steal)
		require.NoError(t, err)
		g := <-granted
		<-g.Lost()
		require.NoError(t, g.Release(context.Background()))
		s, err := second.Client("observer").Query(t.Context())
		require.NoError(t, err)
		assert.Empty(t, s.Pending)
		require.NoError(t, stealer.Release(t.Context()))
		require.NoError(t, blockers.Release(t.Context()))
	})
}

// The lease of a backend shows its Resource. Owners whose backends share a Key exclude each other and see each other.
func TestBackendsThatShareAKey(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		network := locktest.NewNetwork()
		files := locktest.NewSpace()
		web := w.talking("web", network.Join())
		file := w.configured("file", lock.Config{Channel: network.Join(), Backends: []lock.Backend{{Strategy: lock.FileLock, Resource: "project/.lock", Key: "project",
			KeepsFrozen: true, Locker: lock.Both(w.space.Client("file"), files.Client("file")), Records: w.records}}})
		mine := web.acquire(lock.AcquireOptions{})
		_, err := file.Acquire(t.Context(), lock.AcquireOptions{IfAvailable: true})
		require.ErrorIs(t, err, lock.ErrFallbackConflict)
		web.release(mine)
		lease := file.acquire(lock.AcquireOptions{Path: []string{"u1"}})
		assert.Equal(t, "project/.lock//u1", lease.Resource)
		holders, _, err := web.Inspect(t.Context())
		require.NoError(t, err)
		require.Len(t, holders, 1)
		assert.Equal(t, lease.ID, holders[0].LeaseID)
		_, err = web.Acquire(t.Context(), lock.AcquireOptions{Path: []string{"u1"}, IfAvailable: true})
		require.ErrorIs(t, err, lock.ErrDenied)
		file.release(lease)
	})
}

// slowLocker answers its requests late.
type slowLocker struct {
	lock.Locker
	by time.Duration
}

func (s slowLocker) Request(ctx context.Context, r lock.Request) (lock.Grant, error) {
	time.Sleep(s.by)
	return s.Locker.Request(ctx, r)
}

// A page has the Web Lock and asks for the file: Inspect shows one waiter or one holder, and no unnamed holder beside
// it.
func TestInspectBetweenTheLockersOfBoth(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		network := locktest.NewNetwork()
		files := slowLocker{locktest.NewSpace().Client("file"), 100 * time.Millisecond}
		web := w.talking("web", network.Join())
		file := w.configured("file", lock.Config{Channel: network.Join(), Backends: []lock.Backend{{Strategy: lock.FileLock, Resource: "project/.lock", Key: "project",
			KeepsFrozen: true, Locker: lock.Both(w.space.Client("file"), files), Records: w.records}}})
		mine := web.acquire(lock.AcquireOptions{})
		got := file.begin(t.Context(), patient)
		w.sleep(time.Second)
		web.release(mine)
		w.sleep(50 * time.Millisecond)
		holders, waiters, err := web.Inspect(t.Context())
		require.NoError(t, err)
		require.Len(t, holders, 1)
		assert.Empty(t, waiters)
		assert.Equal(t, "tab file", holders[0].OwnerName)
		file.release((<-got).lease)
	})
}

// A waiter over the file takes over from a frozen holder of the other strategy as from one of the same strategy.
func TestFileTakesOverFromFrozenWebLock(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		victim, _ := w.frozen(25 * time.Second)
		files := locktest.NewSpace()
		waiter := w.configured("file", lock.Config{Channel: locktest.NewNetwork().Join(), Backends: []lock.Backend{{Strategy: lock.FileLock, Resource: "project/.lock",
			Key: "project", KeepsFrozen: true, Locker: lock.Both(w.space.Client("file"), files.Client("file")), Records: w.records}}})
		got := <-waiter.begin(t.Context(), patient)
		require.NoError(t, got.err)
		between(t, 25*time.Second, got.at, 31*time.Second)
		assert.True(t, isLost(victim))
		waiter.release(got.lease)
		w.mustBeFree()
	})
}
