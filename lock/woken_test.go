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
)

// woken is the Locker of a page that is frozen while it waits. When the page wakes, it receives its grant first. The
// message that the grant was stolen meanwhile arrives no later than the answer to its next question.
type woken struct {
	lock.Locker
	asleep func() // lasts as long as the freeze
	grant  atomic.Pointer[lateGrant]
	told   sync.Once
}

func (l *woken) Request(ctx context.Context, r lock.Request) (lock.Grant, error) {
	g, err := l.Locker.Request(ctx, r)
	if err != nil || r.IfAvailable || l.grant.Load() != nil || r.Wants[0].Mode == lock.Shared {
		return g, err
	}
	l.asleep()
	late := &lateGrant{g, make(chan struct{})}
	l.grant.Store(late)
	return plainGrant{late}, nil
}

func (l *woken) Query(ctx context.Context) (lock.Snapshot, error) {
	if late := l.grant.Load(); late != nil {
		l.told.Do(func() { _ = late.Look(ctx, lock.Instant{}) })
	}
	return l.Locker.Query(ctx)
}

// plainGrant finds nothing out by itself, like the grant of a Web Lock.
type plainGrant struct{ lock.Grant }

func (plainGrant) Look(context.Context, lock.Instant) error { return nil }

// A page that was frozen while it waited was granted the lock, and the lock was stolen before it woke. It makes no
// lease of that grant: its token would be higher than that of the new holder.
func TestGrantStolenWhileFrozenMakesNoLease(t *testing.T) {
	for _, frozen := range []time.Duration{300 * time.Millisecond, 6 * time.Second} {
		virtual(t, func(t *testing.T, w *world) {
			holder, stealer := w.tab("holder"), w.tab("stealer")
			held, b := holder.acquire(lock.AcquireOptions{}), w.backend("a")
			b.Records = nil // the fake keeps one record; the file keeps those of both
			stolen := make(chan lock.Lease, 1)
			b.Locker = &woken{Locker: b.Locker, asleep: func() {
				steal := lock.AcquireOptions{Steal: true}
				stolen <- stealer.acquire(steal)
				time.Sleep(frozen)
			}}
			waiting := w.join("a", b).begin(t.Context(), patient)
			w.sleep(0)
			holder.release(held)
			now := <-stolen
			w.sleep(20 * time.Second)
			require.NoError(t, now.Err())
			assert.Empty(t, waiting, "two leases")
			stealer.release(now)
			o := <-waiting
			require.NoError(t, o.err)
			assert.Greater(t, o.lease.Token, now.Token)
			require.NoError(t, o.lease.Release(t.Context()))
		})
	}
}

// slowQueries is a Locker whose answers to questions take a moment.
type slowQueries struct{ lock.Locker }

func (l slowQueries) Query(ctx context.Context) (lock.Snapshot, error) {
	time.Sleep(20 * time.Millisecond)
	return l.Locker.Query(ctx)
}

// The time limit of a page that was frozen while it waited ends as the page wakes, before the page knows that its grant
// was stolen. It makes no lease of that grant either.
func TestGrantStolenWhileFrozenMakesNoLeaseAtTheTimeLimit(t *testing.T) {
	for name, path := range map[string][]string{"project": nil, "place": {"x"}} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, w *world) {
				holder, stealer := w.tab("holder"), w.tab("stealer")
				held, b := holder.acquire(lock.AcquireOptions{Path: path}), w.backend("a")
				b.Records = nil
				stolen := make(chan lock.Lease, 1)
				b.Locker = slowQueries{&woken{Locker: b.Locker, asleep: func() {
					stolen <- stealer.acquire(lock.AcquireOptions{Path: path, Steal: true})
					time.Sleep(time.Second)
				}}}
				a := w.join("a", b)
				waiting := a.begin(t.Context(), lock.AcquireOptions{Path: path, Timeout: 1010 * time.Millisecond, Backoff: patient.Backoff})
				w.sleep(0)
				holder.release(held)
				now := <-stolen
				require.ErrorIs(t, (<-waiting).err, lock.ErrTimeout)
				assert.Zero(t, a.count(lock.EventAcquired), "two leases")
				require.NoError(t, now.Err())
				stealer.release(now)
				w.sleep(time.Second)
				w.mustBeFree()
			})
		})
	}
}

// sleeper is the Locker of a machine that sleeps while a page waits for the answer to a question.
type sleeper struct {
	lock.Locker
	sleep func()
	slept sync.Once
}

func (l *sleeper) Query(ctx context.Context) (lock.Snapshot, error) {
	l.slept.Do(l.sleep)
	return l.Locker.Query(ctx)
}

// A page was granted its lock and its token, and slept past its TTL before it had the lease. It makes no lease of that
// grant.
func TestLeaseThatEndsBeforeItBegins(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		holder, b := w.tab("holder"), w.backend("a")
		b.Locker = &sleeper{Locker: b.Locker, sleep: func() { w.clock.Sleep(time.Minute) }}
		held, a := holder.acquire(lock.AcquireOptions{}), w.join("a", b)
		waiting := a.begin(t.Context(), patient)
		w.sleep(2 * time.Second)
		holder.release(held)
		o := <-waiting
		require.NoError(t, o.err)
		w.sleep(0)
		require.NoError(t, o.lease.Err())
		assert.Equal(t, 1, a.count(lock.EventAcquired))
		record, there := w.records.Present()
		require.True(t, there)
		assert.Equal(t, o.lease.Token, record.Token)
		a.release(o.lease)
		w.mustBeFree()
	})
}

// A page sleeps past the TTL of its lease, and acquires a nested one as it wakes. It gets no token, which would be higher than
// that of the next holder.
func TestNoLeaseWithinOneThatSleptPastItsTTL(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		outer := a.acquire(place("x"))
		w.clock.Sleep(time.Minute)
		_, err := a.Acquire(lock.Within(t.Context(), outer), place("x", "y"))
		require.ErrorIs(t, err, lock.ErrAborted)
		require.ErrorIs(t, outer.Err(), lock.ErrStale)
		w.sleep(2 * time.Millisecond) // the millisecond of the token is over
		w.mustBeFree()
	})
}

// A page was frozen while its lease was stolen, and acquires a nested one as it wakes, before it knows. It gets no token.
func TestNoLeaseWithinOneThatWasStolenWhileFrozen(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		b, stealer := w.backend("a"), w.tab("stealer")
		b.Locker = &woken{Locker: b.Locker, asleep: func() {}}
		a := w.join("a", b)
		first := stealer.acquire(place("x"))
		waiting := a.begin(t.Context(), place("x"))
		stealer.release(first)
		outer := (<-waiting).lease
		now := stealer.acquire(lock.AcquireOptions{Path: []string{"x"}, Steal: true})
		require.NoError(t, outer.Err(), "it does not know")
		_, err := a.Acquire(lock.Within(t.Context(), outer), place("x"))
		require.ErrorIs(t, err, lock.ErrReentrant)
		_, err = a.Acquire(lock.Within(t.Context(), outer), shared(place()))
		require.ErrorIs(t, err, lock.ErrAborted)
		require.ErrorIs(t, outer.Err(), lock.ErrLost)
		require.NoError(t, now.Err())
		stealer.release(now)
		w.mustBeFree()
	})
}

// A page sleeps past the TTL of its lease, but not past that of a nested one, which was renewed later. The nested lease ends at its next look
// at the clock, before the outer one looks: another client may hold the place.
func TestNestedLeaseEndsWithOneThatSleptPastItsTTL(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		outer := a.acquire(place("x"))
		w.sleep(5 * time.Second)
		inner, err := a.Acquire(lock.Within(t.Context(), outer), place("x", "y"))
		require.NoError(t, err)
		innermost, err := a.Acquire(lock.Within(t.Context(), inner), place("x", "y", "z"))
		require.NoError(t, err)
		w.clock.Sleep(lock.DefaultWebLockTTL - 3*time.Second)
		_, err = innermost.Renew(t.Context())
		require.ErrorIs(t, err, lock.ErrLost)
		_, err = inner.Renew(t.Context())
		require.ErrorIs(t, err, lock.ErrLost)
		w.sleep(10 * time.Second)
		require.ErrorIs(t, outer.Err(), lock.ErrStale)
		w.mustBeFree()
	})
}
