package lock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/wait"
	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/lock/locktest"
)

// frozen is a holder that does not run: its lock and its record stay, and it does not answer.
func (w *world) frozen(expires time.Duration) (lock.Grant, lock.Record) {
	w.Helper()
	return w.frozenAs(lock.Exclusive, expires)
}

func (w *world) frozenAs(mode lock.Mode, expires time.Duration) (lock.Grant, lock.Record) {
	w.Helper()
	grant, err := w.space.Client("frozen").Request(w.Context(), lock.Request{Wants: []lock.Want{{Name: "project", Mode: mode}}})
	require.NoError(w, err)
	record := lock.Record{Resource: "project", LeaseID: "of the frozen", OwnerID: "frozen", AcquiredAt: w.start, ExpiresAt: w.start.Add(expires), TTL: expires, Mode: mode}
	record.Token, err = w.records.Claim(w.Context(), record, false)
	require.NoError(w, err)
	return grant, record
}

// patient waits in the queue without a limit.
var patient = lock.AcquireOptions{Backoff: lock.Backoff{MaxRetries: lock.Unlimited}}

func TestFrozenHolderIsTakenOverAfterItsTTL(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		victim, record := w.frozen(25 * time.Second)
		waiter := w.talking("a", locktest.NewNetwork().Join())
		got := <-waiter.begin(t.Context(), patient)
		require.NoError(t, got.err)
		assert.GreaterOrEqual(t, got.at, 25*time.Second, "taken over before its time")
		assert.Less(t, got.at, 31*time.Second)
		assert.Greater(t, got.lease.Token, record.Token)
		select {
		case <-victim.Lost():
		default:
			assert.Fail(t, "the former holder got no event")
		}
		events := waiter.seen()
		assert.Equal(t, []lock.EventType{lock.EventAttempt, lock.EventAcquired, lock.EventRenewScheduled},
			[]lock.EventType{events[len(events)-3].Type, events[len(events)-2].Type, events[len(events)-1].Type})
		waiter.release(got.lease)
		w.mustBeFree()
	})
}

func TestOneOfManyWaitersTakesOver(t *testing.T) {
	for range 50 {
		virtual(t, func(t *testing.T, w *world) {
			w.frozen(5 * time.Second)
			network := locktest.NewNetwork()
			var waiters []*owner
			var outcomes []<-chan outcome
			for _, id := range []string{"a", "b", "c", "d"} {
				o := w.talking(id, network.Join())
				waiters, outcomes = append(waiters, o), append(outcomes, o.begin(t.Context(), patient))
			}
			w.sleep(12 * time.Second)
			for range waiters {
				var held []lock.Lease
				for _, c := range outcomes {
					select {
					case got := <-c:
						require.NoError(t, got.err)
						held = append(held, got.lease)
					default:
					}
				}
				require.Len(t, held, 1, "all found the holder frozen at once, one takes over")
				require.NoError(t, held[0].Release(t.Context()))
				synctest.Wait()
			}
			for _, o := range waiters {
				assert.Zero(t, o.count(lock.EventReadonlyEntered), "the next waiter stole the lock from a tab that had just taken over")
			}
			w.mustBeFree()
		})
	}
}

func TestHolderThatAnswersIsNotTakenOver(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		network := locktest.NewNetwork()
		holder := w.talking("holder", network.Join())
		lease := holder.acquire(lock.AcquireOptions{})
		// Another client's clock is wrong, or a disk is slow: the record looks expired, but the holder lives.
		old := lock.Record{Resource: "project", LeaseID: lease.ID, OwnerID: "holder", ExpiresAt: w.start.Add(-time.Hour)}
		require.NoError(t, w.records.Renew(t.Context(), old))
		waiting := w.talking("a", network.Join()).begin(t.Context(), patient)
		w.sleep(9 * time.Second)
		assert.Empty(t, waiting)
		assert.NoError(t, lease.Err())
		holder.release(lease)
		got := <-waiting
		require.NoError(t, got.err)
		require.NoError(t, got.lease.Release(t.Context()))
	})
}

func TestNoTakeoverWithoutChannel(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		victim, _ := w.frozen(time.Second)
		ctx, giveUp := context.WithTimeout(t.Context(), time.Hour)
		defer giveUp()
		got := <-w.tab("mute").begin(ctx, patient)
		assert.ErrorIs(t, got.err, lock.ErrTimeout)
		shared := patient
		shared.Mode = lock.Shared
		got = <-w.talking("reader", locktest.NewNetwork().Join()).begin(ctx, shared)
		assert.ErrorIs(t, got.err, lock.ErrTimeout)
		require.NoError(t, victim.Release(t.Context()))
	})
}

// A record may be left behind by a holder that is gone. A holder of places of the project since then lives, and its
// lock is not stolen.
func TestOldRecordDoesNotLetWaitersStealPlaces(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		gone, _ := w.frozen(time.Second)
		require.NoError(t, gone.Release(t.Context()))
		network := locktest.NewNetwork()
		a, b := w.talking("a", network.Join()), w.talking("b", network.Join())
		place := a.acquire(lock.AcquireOptions{Path: []string{"u1"}})
		own := b.acquire(lock.AcquireOptions{Path: []string{"u2"}})
		waiting := b.begin(t.Context(), patient)
		w.sleep(time.Minute)
		require.NoError(t, place.Err())
		a.release(place)
		w.sleep(time.Minute)
		require.NoError(t, own.Err())
		b.release(own)
		got := <-waiting
		require.NoError(t, got.err)
		b.release(got.lease)
	})
}

// The wall clock is set back by an hour after a holder has written its record and is frozen. A waiter believes the
// record for its TTL, not for an hour.
func TestFrozenHolderIsTakenOverAfterClockSetBack(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		w.frozen(25 * time.Second)
		w.clock.SetWall(-time.Hour)
		got := <-w.talking("a", locktest.NewNetwork().Join()).begin(t.Context(), patient)
		require.NoError(t, got.err)
		between(t, 25*time.Second, got.at, 31*time.Second)
	})
}

// The same, if the clock is set back while the client waits: it saw the record before.
func TestFrozenHolderIsTakenOverAfterClockSetBackWhileWaiting(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		w.frozen(25 * time.Second)
		outcome := w.talking("a", locktest.NewNetwork().Join()).begin(t.Context(), patient)
		w.sleep(10 * time.Second)
		w.clock.SetWall(-time.Hour)
		got := <-outcome
		require.NoError(t, got.err)
		between(t, 25*time.Second, got.at, 31*time.Second)
	})
}

// A waiter reads a record that is valid for an hour. The holder leaves, and its successor, whose TTL is short, is
// frozen: the waiter does not sleep for the hour.
func TestFrozenSuccessorOfLongLeaseIsTakenOver(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		first, long := w.frozen(time.Hour)
		next := w.queued("next")
		outcome := w.talking("a", locktest.NewNetwork().Join()).begin(t.Context(), patient)
		w.sleep(time.Second)
		require.NoError(t, w.records.Remove(t.Context(), long))
		require.NoError(t, first.Release(t.Context()))
		<-next
		now := w.clock.Now().Wall
		_, err := w.records.Claim(t.Context(), lock.Record{Resource: "project", LeaseID: "of the successor", OwnerID: "next", AcquiredAt: now, ExpiresAt: now.Add(5 * time.Second), TTL: 5 * time.Second}, false)
		require.NoError(t, err)
		got := <-outcome
		require.NoError(t, got.err)
		between(t, 6*time.Second, got.at, 23*time.Second)
	})
}

// queued requests the project's lock for a client, and returns once the request is in the queue.
func (w *world) queued(client string) <-chan lock.Grant {
	granted := make(chan lock.Grant, 1)
	go func() {
		g, err := w.space.Client(client).Request(w.Context(), lock.Request{Wants: []lock.Want{{Name: "project", Mode: lock.Exclusive}}})
		assert.NoError(w, err)
		granted <- g
	}()
	synctest.Wait()
	return granted
}

// frozenAfterQuery is the Locker of a tab that is frozen when the answer to a query has come.
type frozenAfterQuery struct {
	lock.Locker
	freeze func()
}

func (d *frozenAfterQuery) Query(ctx context.Context) (lock.Snapshot, error) {
	s, err := d.Locker.Query(ctx)
	if d.freeze != nil {
		d.freeze()
	}
	return s, err
}

// A waiter is frozen after its last look, just before it steals. The holder wakes and releases, and the next waiter has
// the lock when the first one wakes.
func TestWaiterThatFreezesAfterItsLookStealsNothing(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		victim, record := w.frozen(5 * time.Second)
		successor := w.queued("successor")
		b := w.backend("a")
		stealer := &frozenAfterQuery{Locker: b.Locker}
		b.Locker = stealer
		froze := false
		stealer.freeze = func() {
			now, err := w.space.Client("x").Query(t.Context())
			require.NoError(t, err)
			taking := false
			for _, held := range now.Held {
				taking = taking || held.Name == "project takeover"
			}
			if !taking || froze {
				return
			}
			froze = true
			require.NoError(t, w.records.Remove(t.Context(), record))
			require.NoError(t, victim.Release(t.Context()))
			time.Sleep(4 * time.Second)
		}
		waiting := w.configured("a", lock.Config{Backends: []lock.Backend{b}, Channel: locktest.NewNetwork().Join()}).begin(t.Context(), patient)
		g := <-successor
		w.sleep(time.Minute)
		assert.True(t, froze)
		assert.False(t, isLost(g), "it lives")
		assert.Empty(t, waiting)
		require.NoError(t, g.Release(t.Context()))
		require.NoError(t, (<-waiting).err)
	})
}

// A client takes the lock by force from a frozen holder. While its record is being written, the file still has the expired
// record of that holder. Those who wait steal nothing from the client: it lives.
func TestStealerIsNotTakenOverDuringItsClaim(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		w.frozen(25 * time.Second)
		network := locktest.NewNetwork()
		waiting := w.talking("a", network.Join()).begin(t.Context(), patient)
		b := w.backend("stealer")
		b.Records = recordsFunc{Records: w.records, claim: func(context.Context, lock.Record) error { time.Sleep(3 * time.Second); return nil }}
		stealer := w.configured("stealer", lock.Config{Backends: []lock.Backend{b}, Channel: network.Join()})
		w.sleep(24 * time.Second)
		got := <-stealer.begin(t.Context(), lock.AcquireOptions{Steal: true})
		require.NoError(t, got.err)
		assert.Equal(t, 27*time.Second, got.at)
		w.sleep(time.Minute)
		assert.NoError(t, got.lease.Err())
		assert.Empty(t, waiting)
		stealer.release(got.lease)
		next := <-waiting
		require.NoError(t, next.err)
		require.NoError(t, next.lease.Release(t.Context()))
	})
}

// A lock is stolen from a client that is still writing the record of its own steal. That record would end the lease of the second client.
func TestStealerThatLostItsLockWritesNoRecord(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		w.tab("holder").acquire(lock.AcquireOptions{})
		b := w.backend("first")
		b.Records = recordsFunc{Records: w.records, claim: func(ctx context.Context, _ lock.Record) error { return wait.For(ctx, 3*time.Second) }}
		first := w.join("first", b).begin(t.Context(), lock.AcquireOptions{Steal: true, Backoff: patient.Backoff, Timeout: 2 * time.Minute})
		w.sleep(time.Second)
		second := w.tab("second").acquire(lock.AcquireOptions{Steal: true})
		w.sleep(time.Minute)
		require.NoError(t, second.Err())
		require.Empty(t, first)
		require.NoError(t, second.Release(t.Context()))
		got := <-first
		require.NoError(t, got.err)
		assert.Greater(t, got.lease.Token, second.Token)
		require.NoError(t, got.lease.Release(t.Context()))
		w.mustBeFree()
	})
}
