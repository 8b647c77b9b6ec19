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

func at(path ...string) lock.AcquireOptions { return lock.AcquireOptions{Path: path} }

func shared(path ...string) lock.AcquireOptions {
	return lock.AcquireOptions{Path: path, Mode: lock.Shared}
}

func (o *tab) within(outer lock.Lease, opts lock.AcquireOptions) lock.Lease {
	o.t.Helper()
	lease, err := o.Acquire(lock.Within(context.Background(), outer), opts)
	require.NoError(o.t, err)
	return lease
}

// denied requests a place that is not free.
func (o *tab) denied(opts lock.AcquireOptions) (why string) {
	o.t.Helper()
	opts.IfAvailable = true
	_, err := o.Acquire(context.Background(), opts)
	require.ErrorIs(o.t, err, lock.ErrDenied)
	return err.Error()
}

// waits is opts without a limit.
func waits(opts lock.AcquireOptions) lock.AcquireOptions {
	opts.Backoff = patient.Backoff
	return opts
}

func TestPlaceHoldsHereAndOnServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		a := open(t, n, locktest.NewSpace(), "A", "a")
		lease := a.acquire(at("book", "chapter/1"))
		assert.Equal(t, lock.Remote, lease.Strategy)
		assert.Equal(t, "https://locks.example/api/documents/project//book/chapter%2F1", lease.Resource)
		assert.Equal(t, int64(101), lease.Token)
		assert.Equal(t, 30*time.Second, lease.TTL)
		sleep(5 * time.Minute)
		assert.Equal(t, []string{"A exclusive documents/project/book/chapter/1"}, n.places(), "heartbeats keep it")
		a.release(lease)
		assert.Empty(t, n.places())
		a.toldItsWholeLife()
	})
}

// Requests that exclude each other between two tabs also do between two browsers, and no others do.
func TestPlacesOfTwoBrowsers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		a, b := open(t, n, locktest.NewSpace(), "A", "a"), open(t, n, locktest.NewSpace(), "B", "b")
		both := lock.AcquireOptions{Paths: [][]string{{"x"}, {"y", "z"}}}
		for _, c := range []struct {
			name        string
			first, then lock.AcquireOptions
			denied      bool
		}{
			{"the same place", at("x"), at("x"), true},
			{"another place", at("x"), at("y"), false},
			{"below it", at("x"), at("x", "y"), true},
			{"above it", at("x", "y"), at("x"), true},
			{"the project", at("x"), at(), true},
			{"of the project", at(), at("x"), true},
			{"both shared", shared("x"), shared("x"), false},
			{"the project, both shared", shared(), shared(), false},
			{"shared, then exclusive", shared("x"), at("x"), true},
			{"exclusive, then shared", at("x"), shared("x"), true},
			{"shared, then the project", shared(), at(), true},
			{"the project, then shared", at(), shared(), true},
			{"shared above it", shared("x"), at("x", "y"), false},
			{"one of several", both, at("y", "z"), true},
			{"beside several", both, at("y", "w"), false},
			{"several", at("y"), both, true},
		} {
			first := a.acquire(c.first)
			if c.denied {
				assert.Contains(t, b.denied(c.then), "tab A holds it in another browser", c.name)
			} else {
				second := b.acquire(c.then)
				assert.Greater(t, second.Token, first.Token, c.name)
				b.release(second)
			}
			a.release(first)
		}
		assert.Empty(t, n.places())
	})
}

func TestPlaceIsWaitedForOnServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		a, b := open(t, n, locktest.NewSpace(), "A", "a"), open(t, n, locktest.NewSpace(), "B", "b")
		first := a.acquire(at("x"))
		waiting := b.begin(context.Background(), waits(at("x", "y")))
		sleep(3 * time.Minute)
		assert.Len(t, n.places(), 1)
		a.release(first)
		require.NoError(t, <-waiting)
		assert.Equal(t, []string{"B exclusive documents/project/x/y"}, n.places())
		assert.Equal(t, []string{"attempt", "error acquire-denied", "waiting", "attempt"}, b.told()[:4])
		assert.Greater(t, b.Leases()[0].Token, first.Token)

		begun := time.Now()
		_, err := a.Acquire(context.Background(), lock.AcquireOptions{Path: []string{"x"}, Timeout: 5 * time.Second, Backoff: patient.Backoff})
		require.ErrorIs(t, err, lock.ErrTimeout)
		assert.Equal(t, 5*time.Second, time.Since(begun))
		_, err = a.Acquire(context.Background(), at("x"))
		require.ErrorIs(t, err, lock.ErrTimeout, "its retries are spent")
		assert.Less(t, time.Since(begun), 20*time.Second)
		assert.Len(t, n.places(), 1)
	})
}

func TestTabsAskForPlaceOneAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, space := newInternet(), locktest.NewSpace()
		a, b := open(t, n, space, "A", "a"), open(t, n, space, "A", "b")
		first := a.acquire(at("x"))
		waiting := b.begin(context.Background(), waits(at("x")))
		assert.Equal(t, []string{"POST A", "PUT A"}, n.requests(), "a page without the lock of this machine does not ask the server")
		a.release(first)
		require.NoError(t, <-waiting)
		assert.Equal(t, []string{"POST A", "PUT A", "DELETE A", "POST A", "PUT A"}, n.requests())
	})
}

func TestPlaceIsReleasedOnServerFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, space := newInternet(), locktest.NewSpace()
		a, b := open(t, n, space, "A", "a"), open(t, n, space, "A", "b")
		first := a.acquire(at("x"))
		waiting := b.begin(context.Background(), waits(at("x")))
		n.silence(true)
		go func() {
			assert.ErrorIs(t, first.Release(context.Background()), lock.ErrReleaseFailed)
		}()
		sleep(4 * time.Second)
		assert.Equal(t, []string{"POST A", "PUT A", "DELETE A"}, n.requests(), "this machine holds the lock until the server has answered, or its time is up")
		n.silence(false)
		require.NoError(t, <-waiting)
		assert.Len(t, n.places(), 1)
	})
}

// The document and its places are one tree on the server too.
func TestNextTabReplacesPlacesOfDeadTab(t *testing.T) {
	for name, opts := range map[string]lock.AcquireOptions{"the same place": at("x"), "above it": {}, "below it": at("x", "y"), "shared": shared("x")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newInternet()
				dead := open(t, n, locktest.NewSpace(), "A", "dead") // its browser has forgotten its locks
				lease := dead.acquire(at("x"))
				next := open(t, n, locktest.NewSpace(), "A", "next").acquire(opts)
				assert.Greater(t, next.Token, lease.Token)
				assert.Len(t, n.places(), 1)
				sleep(10 * time.Second)
				require.ErrorIs(t, lease.Err(), lock.ErrLost)
				sleep(time.Minute)
				assert.NoError(t, next.Err())
			})
		})
	}
}

func TestSlotsOfTwoBrowsers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, space := newInternet(), locktest.NewSpace()
		a, b, other := open(t, n, space, "A", "a"), open(t, n, space, "A", "b"), open(t, n, locktest.NewSpace(), "B", "other")
		pool := lock.AcquireOptions{Path: []string{"pool"}, Slots: 3}
		first, second, third := a.acquire(pool), other.acquire(pool), b.acquire(pool)
		assert.Equal(t, []int{0, 1, 2}, []int{first.Slot, second.Slot, third.Slot}, "no slot twice on all machines")
		other.denied(pool)
		b.denied(pool)
		other.denied(at("pool"))

		waiting := other.begin(context.Background(), waits(pool))
		sleep(2 * time.Minute)
		a.release(first)
		require.NoError(t, <-waiting)
		assert.Len(t, n.places(), 3)
		a.denied(pool)
		b.release(third)
		assert.Equal(t, 2, a.acquire(pool).Slot)
	})
}

func TestStealPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, space := newInternet(), locktest.NewSpace()
		a, b, other := open(t, n, space, "A", "a"), open(t, n, space, "A", "b"), open(t, n, locktest.NewSpace(), "B", "other")
		stealer := lock.AcquireOptions{Path: []string{"x", "y"}, Steal: true, Backoff: patient.Backoff}
		first := a.acquire(at("x"))
		second := b.acquire(stealer)
		assert.Greater(t, second.Token, first.Token)
		sleep(0)
		require.ErrorIs(t, first.Err(), lock.ErrLost)
		sleep(time.Minute)
		require.NoError(t, second.Err(), "the former holder released nothing of the stealer")
		assert.Equal(t, []string{"A exclusive documents/project/x/y"}, n.places())

		waiting := other.begin(context.Background(), stealer)
		sleep(time.Minute)
		require.NoError(t, second.Err(), "the stealing request waits for the holder on another machine")
		b.release(second)
		require.NoError(t, <-waiting)
	})
}

func TestNetworkFailureDuringPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		a := open(t, n, locktest.NewSpace(), "A", "a")
		lease := a.acquire(shared("x"))
		a.told()
		sleep(5 * time.Second)
		n.set(true)
		sleep(15 * time.Second)
		n.set(false)
		sleep(time.Minute)
		require.NoError(t, lease.Err())
		log := a.told()
		assert.Equal(t, []string{"error renew-failed", "waiting"}, log[:2])
		assert.Contains(t, log, "renewed")

		lease, err := lease.Renew(context.Background())
		require.NoError(t, err)
		n.set(true)
		sleep(30*time.Second - 61*time.Millisecond)
		require.NoError(t, lease.Err())
		sleep(time.Millisecond)
		require.ErrorIs(t, lease.Err(), lock.ErrStale, "a little before the TTL: the server's clock may be faster")
		assert.NotEmpty(t, n.places(), "the server keeps it until then")
		sleep(60 * time.Millisecond)
		assert.Empty(t, n.places())
		log = a.told()
		assert.Equal(t, []string{"error lease-stale", "readonly-entered lease-stale"}, log[len(log)-2:])
	})
}

func TestServerEndsPlace(t *testing.T) {
	for name, take := range map[string]func(n *internet){
		"expired":         func(n *internet) { n.leases = nil },
		"somebody else's": func(n *internet) { n.leases[0].session = "B" },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newInternet()
				lease := open(t, n, locktest.NewSpace(), "A", "a").acquire(at("x"))
				n.mu.Lock()
				take(n)
				n.mu.Unlock()
				sleep(10 * time.Second)
				assert.ErrorIs(t, lease.Err(), lock.ErrLost)
			})
		})
	}
}

func TestGivingUpPlaceLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, space := newInternet(), locktest.NewSpace()
		a, b := open(t, n, locktest.NewSpace(), "A", "a"), open(t, n, space, "B", "b")
		first := a.acquire(at("x"))
		ctx, abort := context.WithCancel(context.Background())
		waiting := b.begin(ctx, waits(at("x")))
		b.browser.onGrant = abort // granted and abandoned at the same moment
		a.release(first)
		require.ErrorIs(t, <-waiting, lock.ErrAborted)
		sleep(time.Second)
		assert.Empty(t, n.places())
		open(t, n, space, "B", "c").acquire(lock.AcquireOptions{Path: []string{"x"}, IfAvailable: true})
	})
}

func TestPlaceThatServerDoesNotGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		a := open(t, n, locktest.NewSpace(), "A", "a")
		_, err := a.Acquire(context.Background(), lock.AcquireOptions{Path: []string{"x"}, TTL: time.Minute})
		require.ErrorIs(t, err, lock.ErrInvalidArgument)
		assert.ErrorContains(t, err, "ttlMs (60000) must not be longer than the server keeps a lock (30000)")
		assert.Empty(t, n.places())
		n.set(true)
		_, err = a.Acquire(context.Background(), lock.AcquireOptions{Path: []string{"x"}, IfAvailable: true})
		require.ErrorIs(t, err, lock.ErrTimeout)
		assert.ErrorContains(t, err, "no answer of the server")
		n.set(false)
		lease := a.acquire(at("x"))
		n.set(true)
		err = lease.Release(context.Background())
		require.ErrorIs(t, err, lock.ErrReleaseFailed)
	})
}
