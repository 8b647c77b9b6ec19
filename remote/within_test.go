package remote_test

import (
	"context"
	"fmt"
	"strconv"
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

// Locks that the outer lease already holds exclusively are not requested again: they would conflict with the outer
// lease.
func TestPlaceWithinCoveringLease(t *testing.T) {
	pool := lock.AcquireOptions{Path: []string{"x", "pool"}, Slots: 2}
	for name, c := range map[string]struct{ outer, inner lock.AcquireOptions }{
		"a place of the project":     {lock.AcquireOptions{}, at("x")},
		"below a place":              {at("x"), at("x", "y")},
		"below one of several":       {lock.AcquireOptions{Paths: [][]string{{"w"}, {"x"}}}, at("x", "y")},
		"shared below it":            {at("x"), shared("x", "y")},
		"shared above it":            {at("x", "y"), shared("x")},
		"shared where it is shared":  {shared("x"), shared("x")},
		"shared where it has a slot": {pool, shared("x", "pool")},
		"a slot below it":            {at("x"), pool},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, space := newInternet(), locktest.NewSpace()
				a := open(t, n, space, "A", "a")
				outer := a.acquire(c.outer)
				held := n.places()
				c.inner.IfAvailable = true
				inner := a.within(outer, c.inner)
				assert.Greater(t, inner.Token, outer.Token, "its token is of the server")
				assert.Contains(t, n.places(), held[0])
				again := a.within(inner, shared("x")) // further nested
				assert.Greater(t, again.Token, inner.Token)
				sleep(2 * time.Minute)
				require.NoError(t, inner.Err())
				a.release(again)
				a.release(inner)
				assert.Equal(t, held, n.places())
				a.release(outer)
			})
		})
	}
}

// Locks that the outer lease does not cover are acquired on the server as well.
func TestPlaceWithinLeaseThatDoesNotCoverIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		a, b := open(t, n, locktest.NewSpace(), "A", "a"), open(t, n, locktest.NewSpace(), "B", "b")
		outer := a.acquire(shared("x"))
		inner := a.within(outer, lock.AcquireOptions{Paths: [][]string{{"x", "y"}, {"z"}}})
		assert.Equal(t, []string{"A shared documents/project/x", "A exclusive documents/project/x/y documents/project/z"}, n.places())
		b.denied(at("z"))
		mixed := a.within(inner, lock.AcquireOptions{Paths: [][]string{{"z", "below"}, {"w"}}})
		assert.Equal(t, "A exclusive documents/project/w", n.places()[2], "of several places, the request contains those that the outer lease does not cover")
		a.release(mixed)
		slots := a.acquire(lock.AcquireOptions{Path: []string{"pool"}, Slots: 2})
		second := a.within(slots, lock.AcquireOptions{Path: []string{"pool"}, Slots: 2})
		assert.Equal(t, []int{0, 1}, []int{slots.Slot, second.Slot})
		a.release(outer)
		sleep(0)
		require.ErrorIs(t, inner.Err(), lock.ErrLost)
		assert.Len(t, n.places(), 2, "a nested lease ends with the outer one")
	})
}

// A nested lease ends with the outer one, even while its heartbeat waits for the server: another machine has the place then.
func TestPlaceWithinLeaseThatEndsDuringAHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		a, b := open(t, n, locktest.NewSpace(), "A", "a"), open(t, n, locktest.NewSpace(), "B", "b")
		outer := a.acquire(at("x"))
		inner := a.within(outer, at("x", "y"))
		n.mu.Lock()
		n.delay = func(r remote.Request) bool {
			if r.Method == "PUT" {
				time.Sleep(4 * time.Second)
			}
			return false
		}
		n.mu.Unlock()
		go func() { _, _ = inner.Renew(context.Background()) }()
		sleep(time.Second)
		a.release(outer)
		sleep(0)
		require.ErrorIs(t, inner.Err(), lock.ErrLost)
		b.release(b.acquire(at("x")))
		sleep(time.Minute)
	})
}

func TestPlaceWithinBlockingLease(t *testing.T) {
	pool := lock.AcquireOptions{Path: []string{"pool"}, Slots: 2}
	for name, c := range map[string]struct {
		outer, inner lock.AcquireOptions
		want         error
	}{
		"the same again":        {at("x"), at("x"), lock.ErrReentrant},
		"more than it has":      {at("x", "y"), at("x"), lock.ErrReentrant},
		"an upgrade":            {shared("x"), at("x"), lock.ErrReentrant},
		"below a slot":          {pool, at("pool", "y"), lock.ErrUnsupported},
		"shared below a slot":   {pool, shared("pool", "y"), lock.ErrUnsupported},
		"a slot above it":       {at("pool", "y"), pool, lock.ErrUnsupported},
		"a slot of what it has": {shared("pool"), pool, lock.ErrUnsupported},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newInternet()
				a := open(t, n, locktest.NewSpace(), "A", "a")
				outer := a.acquire(c.outer)
				begun := time.Now()
				_, err := a.Acquire(lock.Within(context.Background(), outer), c.inner)
				require.ErrorIs(t, err, c.want)
				assert.Zero(t, time.Since(begun), "at once")
				assert.Len(t, n.places(), 1)
				require.NoError(t, outer.Err())
			})
		})
	}
}

// The server treats all tabs of a browser as one owner. A wait in which nothing is held is therefore no deadlock,
// whatever the server reports.
func TestCycleThatServerFinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		n.cycle = true
		a, b := open(t, n, locktest.NewSpace(), "A", "a"), open(t, n, locktest.NewSpace(), "B", "b")
		theirs, ours := b.acquire(at("x")), a.acquire(at("y"))
		_, err := a.Acquire(lock.Within(context.Background(), ours), waits(at("x")))
		require.ErrorIs(t, err, lock.ErrDeadlock)
		require.NoError(t, ours.Err())

		waiting := a.begin(context.Background(), waits(at("x")))
		sleep(time.Minute)
		assert.Empty(t, waiting)
		n.mu.Lock()
		n.cycle = false
		n.mu.Unlock()
		b.release(theirs)
		require.NoError(t, <-waiting)
	})
}

// Every grant and refusal between the tabs of one browser without a server also happens with a server, between two
// browsers and within a lease. Slots are an exception: the server admits less beside them.
func TestServerExcludesSameRequestsAsTabs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		alone := func(space *locktest.Space, id string) *lock.Manager {
			m, err := lock.NewManager(lock.Config{OwnerID: id, Backends: []lock.Backend{{Strategy: lock.WebLock, Resource: "project", Locker: space.Client(id)}}})
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, m.Close(context.Background())) })
			return m
		}
		n, space := newInternet(), locktest.NewSpace()
		here, there, one, other := alone(space, "a"), alone(space, "b"), open(t, n, locktest.NewSpace(), "A", "a"), open(t, n, locktest.NewSpace(), "B", "b")
		outcome := func(first, second *lock.Manager, outer, inner lock.AcquireOptions, within bool) (code lock.Code) {
			held, err := first.Acquire(context.Background(), outer)
			require.NoError(t, err)
			ctx := context.Background()
			if within {
				ctx, second = lock.Within(ctx, held), first
			}
			inner.IfAvailable = true
			lease, err := second.Acquire(ctx, inner)
			if err != nil {
				var e *lock.Error
				require.ErrorAs(t, err, &e)
				code = e.Code
			} else {
				require.NoError(t, lease.Release(context.Background()))
			}
			require.NoError(t, held.Release(context.Background()))
			return code
		}
		var all []lock.AcquireOptions
		for _, mode := range []lock.Mode{lock.Exclusive, lock.Shared} {
			for _, paths := range [][][]string{nil, {{}}, {{"x"}}, {{"x", "y"}}, {{"x", "y", "z"}}, {{"xy"}}, {{"w"}, {"x", "y"}}, {{"x"}, {"x", "y"}}} {
				all = append(all, lock.AcquireOptions{Paths: paths, Mode: mode})
			}
		}
		for _, outer := range all {
			for _, inner := range all {
				for _, within := range []bool{false, true} {
					assert.Equal(t, outcome(here, there, outer, inner, within), outcome(one.Manager, other.Manager, outer, inner, within),
						"%v, then %v, within %v", outer, inner, within)
				}
			}
		}
		assert.Empty(t, n.places())
	})
}

// The server has ended the outer lease, and another machine has the place, before a heartbeat shows it. A nested acquisition then gets
// no token, which would be higher than that of the new holder.
func TestPlaceWithinLeaseThatTheServerHasEnded(t *testing.T) {
	for name, inner := range map[string]lock.AcquireOptions{"below it": at("x", "y"), "and another one": {Paths: [][]string{{"x", "y"}, {"z"}}}} {
		for _, deep := range []bool{false, true} {
			t.Run(fmt.Sprint(name, deep), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := newInternet()
					a, b := open(t, n, locktest.NewSpace(), "A", "a"), open(t, n, locktest.NewSpace(), "B", "b")
					outer := a.acquire(at("x"))
					around := outer
					if deep {
						around = a.within(outer, at("x", "w"))
					}
					n.mu.Lock()
					n.remove(n.byName(strconv.FormatInt(outer.Token, 10)))
					n.mu.Unlock()
					later := b.acquire(at("x"))
					_, err := a.Acquire(lock.Within(context.Background(), around), inner)
					require.Error(t, err)
					require.ErrorIs(t, outer.Err(), lock.ErrLost)
					require.NoError(t, later.Err())
					sleep(time.Second)
					assert.Equal(t, []string{"B exclusive documents/project/x"}, n.places())
				})
			})
		}
	}
}

// The network fails after the nested lease has its token, while the outer one is renewed. The acquisition goes on.
func TestPlaceWithinLeaseThatCannotBeRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		a := open(t, n, locktest.NewSpace(), "A", "a")
		outer := a.acquire(at("x"))
		renewals := 0
		n.answer = func(r remote.Request) error {
			if r.Method != "PUT" {
				return nil
			}
			if renewals++; renewals == 2 {
				return errOffline
			}
			return nil
		}
		a.release(a.within(outer, waits(at("x", "y"))))
		require.NoError(t, outer.Err())
		assert.Greater(t, renewals, 3, "of both leases, again")
		assert.Len(t, n.places(), 1)
	})
}

// asleep is the clock of a machine that wakes.
type asleep struct {
	lock.Clock
	slept atomic.Int64
}

func (c *asleep) Now() lock.Instant {
	now := c.Clock.Now()
	now.Wall = now.Wall.Add(time.Duration(c.slept.Load()))
	return now
}

// A machine sleeps past the TTL of a lease, but not past that of a nested one, and another machine has the place when it wakes. The nested
// lease is not renewed, although the server still keeps it and the outer lease has not looked at the clock yet.
func TestPlaceWithinLeaseThatSleptPastItsTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, space, clock := newInternet(), locktest.NewSpace(), &asleep{Clock: lock.SystemClock{}}
		document := remote.NewDocument(remote.Config{Server: &browser{net: n, session: "A"}, URL: "https://locks.example/", Document: "project",
			Local: lock.Backend{Strategy: lock.WebLock, Resource: "holdfast:project", Locker: space.Client("a")}})
		a, err := lock.NewManager(lock.Config{Clock: clock, Backends: []lock.Backend{document.Backend()}})
		require.NoError(t, err)
		defer func() { require.NoError(t, a.Close(context.Background())) }()
		outer, err := a.Acquire(t.Context(), at("x"))
		require.NoError(t, err)
		often := at("x", "y")
		often.HeartbeatInterval = 2 * time.Second
		inner, err := a.Acquire(lock.Within(t.Context(), outer), often)
		require.NoError(t, err)
		sleep(9 * time.Second)
		clock.slept.Add(int64(26 * time.Second))
		n.mu.Lock()
		n.remove(n.byName(strconv.FormatInt(outer.Token, 10))) // it has expired
		n.mu.Unlock()
		later := open(t, n, locktest.NewSpace(), "B", "b").acquire(at("x"))
		_, err = inner.Renew(t.Context())
		require.ErrorIs(t, err, lock.ErrLost)
		require.NoError(t, later.Err())
	})
}
