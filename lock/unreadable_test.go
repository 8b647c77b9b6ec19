package lock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/wait"
	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/lock/locktest"
)

// These tests suspend a process during a step over the file of the records, which stays open until the process wakes.

// withFallback joins as an owner that goes on without a record if it cannot write one.
func (w *world) withFallback(id string, channel lock.Channel) *owner {
	b := w.backend(id)
	b.Records = lock.WithFallback(w.records, &lock.WallTokens{Clock: lock.SystemClock{}}, nil)
	return w.configured(id, lock.Config{Backends: []lock.Backend{b}, Channel: channel})
}

// between asserts when an outcome arrived, counted from the start of the world.
func between(t *testing.T, least, at, most time.Duration) {
	t.Helper()
	assert.GreaterOrEqual(t, at, least)
	assert.LessOrEqual(t, at, most)
}

const unreadable = 30*time.Second + 100*time.Millisecond // lock.DefaultTTL and the grace

func TestUnreadableRecordIsValidForTheTTL(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		victim, _ := w.frozen(25 * time.Second)
		wake := w.records.Open()
		waiter := w.withFallback("a", locktest.NewNetwork().Join())
		got := <-waiter.begin(t.Context(), patient)
		require.NoError(t, got.err)
		between(t, unreadable, got.at, unreadable+8*time.Second) // the looks between the questions, one before the steal, and the claim
		assert.True(t, isLost(victim))
		assert.Equal(t, 1, waiter.count(lock.EventWarning), "the message gives the reason of the takeover")
		wake()
		waiter.release(got.lease)
		w.mustBeFree()
	})
}

func isLost(g lock.Grant) bool { return wait.Closed(g.Lost()) }

// The TTL is the holder's own if its record was read before. The record may have been renewed once since.
func TestRecordThatBecomesUnreadableIsValidForItsTTL(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		w.frozen(5 * time.Second)
		waiter := w.withFallback("a", locktest.NewNetwork().Join())
		outcome := waiter.begin(t.Context(), patient)
		w.sleep(time.Second)
		defer w.records.Open()()
		got := <-outcome
		require.NoError(t, got.err)
		between(t, 10*time.Second, got.at, 17*time.Second)
		waiter.release(got.lease)
	})
}

// A holder that answers keeps its lock although its record cannot be read.
func TestHolderThatAnswersKeepsLockWithoutRecord(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		network := locktest.NewNetwork()
		holder := w.withFallback("holder", network.Join())
		lease := holder.acquire(lock.AcquireOptions{TTL: 10 * time.Minute})
		wake := w.records.Open()
		waiting := w.withFallback("a", network.Join()).begin(t.Context(), patient)
		w.sleep(5 * time.Minute)
		require.NoError(t, lease.Err())
		assert.Empty(t, waiting)
		wake()
		w.sleep(time.Minute)
		require.NoError(t, lease.Err())
		holder.release(lease)
		require.NoError(t, (<-waiting).err)
	})
}

// One of many waiters takes over. The others do not steal its lock, although it has no record: neither while none can
// be read, nor when the old record of the frozen holder becomes readable again.
func TestHolderWithoutRecordKeepsItsLockAfterATakeover(t *testing.T) {
	for _, jammed := range []bool{true, false} {
		virtual(t, func(t *testing.T, w *world) {
			w.frozen(5 * time.Second)
			wake := func() {}
			if jammed {
				wake = w.records.Open()
			} else { // the new holder cannot write, the others can read
				w.records.OnClaim = func(lock.Record) error { return errors.New("the storage is full") }
			}
			network := locktest.NewNetwork()
			var waiters []*owner
			first := make(chan outcome, 4)
			for _, id := range []string{"a", "b", "c", "d"} {
				o := w.withFallback(id, network.Join())
				waiters = append(waiters, o)
				c := o.begin(t.Context(), patient)
				go func() { first <- <-c }()
			}
			for range waiters {
				got := <-first
				require.NoError(t, got.err)
				w.sleep(time.Minute)
				wake()
				wake = func() {}
				w.sleep(time.Minute)
				require.NoError(t, got.lease.Err(), "the next waiter stole the lock from a tab that had just taken over")
				require.NoError(t, got.lease.Release(t.Context()))
			}
			for _, o := range waiters {
				assert.Zero(t, o.count(lock.EventReadonlyEntered))
			}
			w.mustBeFree()
		})
	}
}

// The time without a record counts for one holder only, not for the next one.
func TestTTLBeginsAnewWithAnotherHolder(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		first, _ := w.frozen(25 * time.Second)
		next := w.queued("next")
		defer w.records.Open()()
		waiter := w.withFallback("a", locktest.NewNetwork().Join())
		outcome := waiter.begin(t.Context(), patient)
		w.sleep(20 * time.Second)
		require.NoError(t, first.Release(t.Context()))
		victim := <-next
		got := <-outcome
		require.NoError(t, got.err)
		between(t, 20*time.Second+unreadable-5*time.Second, got.at, 20*time.Second+unreadable+14*time.Second)
		assert.True(t, isLost(victim))
		waiter.release(got.lease)
	})
}

// A waiter takes nothing over if there is no record, or if reading fails with a reason.
func TestMissingRecordProvesNoFrozenHolder(t *testing.T) {
	for name, err := range map[string]error{"none": nil, "no files": lock.ErrUnsupported, "a newer version": lock.ErrFallbackConflict} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, w *world) {
				victim, err2 := w.space.Client("frozen").Request(t.Context(), lock.Request{Wants: []lock.Want{{Name: "project", Mode: lock.Exclusive}}})
				require.NoError(t, err2)
				b := w.backend("a")
				b.Records = reading{b.Records, err}
				waiter := w.configured("a", lock.Config{Backends: []lock.Backend{b}, Channel: locktest.NewNetwork().Join()})
				waiting := waiter.begin(t.Context(), patient)
				w.sleep(9 * time.Minute)
				assert.Empty(t, waiting)
				assert.False(t, isLost(victim))
				require.NoError(t, victim.Release(t.Context()))
				require.NoError(t, (<-waiting).err)
			})
		})
	}
}

// reading are Records that cannot be read, for the reason.
type reading struct {
	lock.Records
	err error
}

func (r reading) Read(ctx context.Context, resource string) (lock.Record, bool, error) {
	if r.err != nil {
		return lock.Record{}, false, r.err
	}
	return r.Records.Read(ctx, resource)
}

// A waiter that cannot post its question cannot know that a holder is silent.
func TestNoTakeoverWhenPostFails(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		victim, _ := w.frozen(time.Second)
		waiting := w.talkingOver("a", silentChannel{locktest.NewNetwork().Join()}).begin(t.Context(), patient)
		w.sleep(9 * time.Minute)
		assert.Empty(t, waiting)
		require.NoError(t, victim.Release(t.Context()))
		require.NoError(t, (<-waiting).err)
	})
}

type silentChannel struct{ *locktest.Channel }

func (silentChannel) Post(lock.Message) error { return errors.New("the channel is closed") }

// A waiter may be suspended itself before it takes over. The others wait for it, but not forever.
func TestWaiterFreezesBeforeItsTakeover(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		w.frozen(5 * time.Second)
		stealer, err := w.space.Client("frozen stealer").Request(t.Context(), lock.Request{Wants: []lock.Want{{Name: "project takeover", Mode: lock.Exclusive}}})
		require.NoError(t, err)
		network := locktest.NewNetwork()
		waiters := []*owner{w.withFallback("a", network.Join()), w.withFallback("b", network.Join()), w.withFallback("c", network.Join())}
		first := make(chan outcome, 3)
		for _, o := range waiters {
			c := o.begin(t.Context(), patient)
			go func() { first <- <-c }()
		}
		got := <-first
		require.NoError(t, got.err)
		between(t, 20*time.Second, got.at, 26*time.Second)
		assert.True(t, isLost(stealer))
		for i := range waiters {
			w.sleep(time.Minute)
			require.NoError(t, got.lease.Err(), "another waiter stole the lock")
			require.NoError(t, got.lease.Release(t.Context()))
			if i < 2 {
				got = <-first
				require.NoError(t, got.err)
			}
		}
		w.mustBeFree()
	})
}

// frozenWhileReading are the records of a page that is frozen while it reads.
type frozenWhileReading struct {
	lock.Records
	clock nap
}

func (r frozenWhileReading) Read(ctx context.Context, resource string) (lock.Record, bool, error) {
	time.Sleep(time.Millisecond)
	r.clock.Now()
	return r.Records.Read(ctx, resource)
}

// A waiter is frozen while it reads a record, and cannot read it when it wakes. The holder may have renewed the record
// just before.
func TestFreezeOfAWaiterIsNoUnreadableRecord(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		silent := w.tab("silent").acquire(lock.AcquireOptions{})
		b, clock := w.backend("a"), nap{w.start, w.start.Add(time.Minute)}
		b.Records = lock.WithFallback(frozenWhileReading{w.records, clock}, &lock.WallTokens{Clock: clock}, nil)
		m, err := lock.NewManager(lock.Config{Clock: clock, Backends: []lock.Backend{b}, Channel: locktest.NewNetwork().Join()})
		require.NoError(t, err)
		defer func() { require.NoError(t, m.Close(t.Context())) }()
		granted := make(chan error, 1)
		go func() { _, err := m.Acquire(t.Context(), patient); granted <- err }()
		w.sleep(time.Minute - time.Second)
		defer w.records.Open()()
		require.NoError(t, <-granted)
		require.ErrorIs(t, silent.Err(), lock.ErrStale, "nobody stole it")
	})
}

// A waiter that is about to take over keeps its place in the queue, and gets the lock when its turn comes.
func TestHolderThatWakesDuringTakeoverServesQueue(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		victim, _ := w.frozen(5 * time.Second)
		_, err := w.space.Client("frozen stealer").Request(t.Context(), lock.Request{Wants: []lock.Want{{Name: "project takeover", Mode: lock.Exclusive}}})
		require.NoError(t, err)
		waiter := w.withFallback("a", locktest.NewNetwork().Join())
		outcome := waiter.begin(t.Context(), patient)
		w.sleep(8 * time.Second)
		require.NoError(t, victim.Release(t.Context()))
		got := <-outcome
		require.NoError(t, got.err)
		between(t, 8*time.Second, got.at, 8*time.Second+10*time.Millisecond)
		waiter.release(got.lease)
	})
}

// A lease with a short TTL does not spend it on waiting for its record.
func TestClaimTakesHalfTheTTLAtMost(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		defer w.records.Open()()
		begun := time.Now()
		o := w.withFallback("a", locktest.NewNetwork().Join())
		lease := o.acquire(lock.AcquireOptions{TTL: 900 * time.Millisecond, HeartbeatInterval: 300 * time.Millisecond})
		assert.Less(t, time.Since(begun), 460*time.Millisecond)
		w.sleep(time.Minute)
		require.NoError(t, lease.Err())
		o.release(lease)
	})
}

// Two tabs hold the project shared, and both are frozen. Every ten seconds, the file of the records cannot be read for six seconds. A waiter
// takes over nevertheless.
func TestFrozenHolderBesideAFileThatOpensAgainAndAgainIsTakenOver(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		_, err := w.space.Client("another").Request(t.Context(), lock.Request{Wants: []lock.Want{{Name: "project", Mode: lock.Shared}}})
		require.NoError(t, err)
		w.frozenAs(lock.Shared, 25*time.Second)
		waiting := w.withFallback("waiter", locktest.NewNetwork().Join()).begin(t.Context(), patient)
		for range 7 {
			w.sleep(4 * time.Second)
			end := w.records.Open()
			w.sleep(6 * time.Second)
			end()
		}
		require.NotEmpty(t, waiting)
		got := <-waiting
		require.NoError(t, got.err)
		require.NoError(t, got.lease.Release(t.Context()))
	})
}

// The record of a holder with a long TTL cannot be read, then it can, then it cannot again. The holder has renewed its lease meanwhile. Its lock is
// stolen only if it is silent for its TTL after that.
func TestSilenceBeforeAValidRecordDoesNotCount(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		network, busy := locktest.NewNetwork(), new(atomic.Bool)
		holder := w.withFallback("holder", network.JoinBusy(busy))
		lease := holder.acquire(lock.AcquireOptions{TTL: 2 * time.Minute, HeartbeatInterval: 114 * time.Second})
		waiting := w.withFallback("waiter", network.Join()).begin(t.Context(), patient)
		busy.Store(true)
		w.sleep(time.Second)
		end := w.records.Open()
		w.sleep(107 * time.Second)
		end()
		w.sleep(8 * time.Second)
		end = w.records.Open()
		w.sleep(time.Minute)
		require.NoError(t, lease.Err())
		busy.Store(false)
		end()
		holder.release(lease)
		require.NoError(t, (<-waiting).err)
	})
}
