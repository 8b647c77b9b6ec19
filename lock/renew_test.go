package lock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/lock"
)

// hanging joins a tab whose renewals never answer until the test is over, even if their context ends.
func (w *world) hanging() (o *owner, under func() int) {
	calls := 0
	hung := make(chan struct{})
	b := w.backend("a")
	b.Records = recordsFunc{Records: w.records, renew: func(context.Context, lock.Record) error {
		calls++
		<-hung
		return nil
	}}
	o = w.join("a", b)
	w.Cleanup(func() { close(hung) })
	return o, func() int { return calls }
}

// watched acquires and counts the calls of OnReadonly.
func (o *owner) watched(opts lock.AcquireOptions) (lock.Lease, chan lock.Event) {
	o.w.Helper()
	readonly := make(chan lock.Event, 10)
	opts.OnReadonly = func(e lock.Event) { readonly <- e }
	lease := o.acquire(opts)
	o.forget()
	return lease, readonly
}

// over fails unless the lease ended with that error and its owner got one event.
func (o *owner) over(l lock.Lease, readonly chan lock.Event, why error) {
	o.w.Helper()
	select {
	case <-l.Done():
	default:
		assert.Fail(o.w, "the lease goes on")
	}
	assert.ErrorIs(o.w, l.Err(), why)
	assert.Equal(o.w, 1, o.count(lock.EventReadonlyEntered))
	require.Len(o.w, readonly, 1)
	assert.Equal(o.w, lock.EventReadonlyEntered, (<-readonly).Type)
}

func TestRenewFailsThenSucceeds(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		fails := 0
		w.records.OnRenew = func(lock.Record) error {
			if fails++; fails <= 2 || fails == 4 {
				return errors.New("disk is busy")
			}
			return nil
		}
		a := w.tab("a")
		a.acquire(lock.AcquireOptions{Backoff: exact})
		a.forget()
		w.sleep(25 * time.Second)
		a.told(`
			10s error renew renew-failed retryable
			10s waiting retry=1 delay=1s
			11s error renew renew-failed retryable
			11s waiting retry=2 delay=1.5s
			12.5s renewed A{web-lock exclusive #1 since=0s ttl=25s expires=37.5s next=22.5s}
			12.5s renew-scheduled A{web-lock exclusive #1 since=0s ttl=25s expires=37.5s next=22.5s} in=10s
			22.5s error renew renew-failed retryable
			22.5s waiting retry=1 delay=1s
			23.5s renewed A{web-lock exclusive #1 since=0s ttl=25s expires=48.5s next=33.5s}
			23.5s renew-scheduled A{web-lock exclusive #1 since=0s ttl=25s expires=48.5s next=33.5s} in=10s
		`)
	})
}

func TestRenewFailureCountsInTheLease(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		w.records.OnRenew = func(lock.Record) error { return errors.New("disk is busy") }
		a := w.tab("a")
		lease := a.acquire(lock.AcquireOptions{Backoff: exact})
		w.sleep(11 * time.Second)
		present, ok := a.Lease(lease.ID)
		require.True(t, ok)
		assert.Equal(t, 2, present.RenewAttempt)
		assert.Equal(t, w.start.Add(12500*time.Millisecond), present.NextHeartbeatAt.Local())
		assert.Equal(t, lease.ExpiresAt, present.ExpiresAt)
	})
}

func TestRenewAlwaysFails(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		w.records.OnRenew = func(lock.Record) error { return errors.New("disk is broken") }
		a := w.tab("a")
		lease, readonly := a.watched(lock.AcquireOptions{Backoff: exact})
		w.sleep(time.Hour)
		a.told(`
			10s error renew renew-failed retryable
			10s waiting retry=1 delay=1s
			11s error renew renew-failed retryable
			11s waiting retry=2 delay=1.5s
			12.5s error renew renew-failed retryable
			12.5s waiting retry=3 delay=2.25s
			14.75s error renew renew-failed retryable
			14.75s waiting retry=4 delay=3.375s
			18.125s error renew renew-failed retryable
			18.125s waiting retry=5 delay=3.4375s
			21.5625s error renew renew-failed retryable
			21.5625s waiting retry=6 delay=1.71875s
			23.28125s error renew renew-failed retryable
			23.28125s waiting retry=7 delay=1s
			24.28125s error renew renew-failed retryable
			24.28125s waiting retry=8 delay=718.75ms
			25s error renew lease-stale
			25s readonly-entered renew-failed lease-stale
		`)
		a.over(lease, readonly, lock.ErrStale)
		w.mustBeFree()
	})
}

func TestRenewHangs(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a, calls := w.hanging()
		lease, readonly := a.watched(lock.AcquireOptions{})
		w.sleep(25*time.Second - 1)
		a.told("")
		w.sleep(1)
		a.told(`
			25s error renew lease-stale
			25s readonly-entered renew-failed lease-stale
		`)
		a.over(lease, readonly, lock.ErrStale)
		w.mustBeFree()
		assert.Equal(t, 1, calls())
	})
}

// The TTL counts from before the write. A slow write must neither extend it nor move the next heartbeat behind its end.
func TestSlowRenewalDoesNotExtendTTL(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		slow := 16 * time.Second // and 10 s to the next heartbeat: 1 s after the TTL
		b := w.backend("a")
		b.Records = recordsFunc{Records: w.records, renew: func(context.Context, lock.Record) error { time.Sleep(slow); return nil }}
		a := w.join("a", b)
		lease, readonly := a.watched(lock.AcquireOptions{Backoff: exact})
		w.sleep(time.Minute)
		// The write that began at 10 s would have renewed the lease until 35 s, but ended after 25 s.
		a.told(`
			25s error renew lease-stale
			25s readonly-entered renew-failed lease-stale
		`)
		a.over(lease, readonly, lock.ErrStale)

		slow = 14 * time.Second
		a.watched(lock.AcquireOptions{HeartbeatInterval: time.Second, TTL: 20 * time.Second})
		w.sleep(21 * time.Second)
		a.told(`
			1m15s renewed A{web-lock exclusive #2 since=1m0s ttl=20s expires=1m21s next=1m16s}
			1m15s renew-scheduled A{web-lock exclusive #2 since=1m0s ttl=20s expires=1m21s next=1m16s} in=1s
			1m21s error renew lease-stale
			1m21s readonly-entered renew-failed lease-stale
		`)
		w.sleep(slow) // the last write ends
	})
}

// The claim took most of the TTL, because the storage was slow or the page slept. The first heartbeat does not wait for
// the rest of it.
func TestSlowClaimIsRenewedSooner(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		b := w.backend("a")
		b.Records = recordsFunc{Records: w.records, claim: func(context.Context, lock.Record) error { time.Sleep(20 * time.Second); return nil }}
		a := w.join("a", b)
		lease, _ := a.watched(lock.AcquireOptions{})
		assert.Equal(t, w.start.Add(22500*time.Millisecond), lease.NextHeartbeatAt.Local())
		w.sleep(15 * time.Second)
		a.told(`
			22.5s renewed A{web-lock exclusive #1 since=0s ttl=25s expires=47.5s next=32.5s}
			22.5s renew-scheduled A{web-lock exclusive #1 since=0s ttl=25s expires=47.5s next=32.5s} in=10s
			32.5s renewed A{web-lock exclusive #1 since=0s ttl=25s expires=57.5s next=42.5s}
			32.5s renew-scheduled A{web-lock exclusive #1 since=0s ttl=25s expires=57.5s next=42.5s} in=10s
		`)
		require.NoError(t, lease.Err())
	})
}

func TestRecordReplaced(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		lease, readonly := a.watched(lock.AcquireOptions{})
		_, err := w.records.Claim(t.Context(), lock.Record{Resource: "project", LeaseID: "other"}, true)
		require.NoError(t, err)
		w.sleep(time.Hour)
		a.told(`
			10s error renew lease-lost
			10s readonly-entered lease-lost lease-lost
		`)
		a.over(lease, readonly, lock.ErrLost)
		w.mustBeFree()
		present, ok := w.records.Present()
		assert.True(t, ok, "the other's record was removed")
		assert.Equal(t, "other", present.LeaseID)
	})
}

func TestStolen(t *testing.T) {
	for _, hang := range []bool{false, true} {
		virtual(t, func(t *testing.T, w *world) {
			a := w.tab("a")
			if hang { // a pending renewal must not delay the event
				a, _ = w.hanging()
			}
			lease, readonly := a.watched(lock.AcquireOptions{HeartbeatInterval: 2 * time.Second})
			w.sleep(1500 * time.Millisecond)
			if hang {
				w.sleep(time.Second)
			}
			a.forget()
			stealer := w.tab("stealer")
			stolen := stealer.acquire(lock.AcquireOptions{Steal: true})
			assert.Greater(t, stolen.Token, lease.Token)
			at := time.Since(w.start).String()
			a.told(at + ` error renew lease-lost
				` + at + ` readonly-entered lease-lost lease-lost`)
			a.over(lease, readonly, lock.ErrLost)
			require.ErrorIs(t, context.Cause(lease.Context()), lock.ErrLost)
			_, err := lease.Renew(t.Context())
			require.ErrorIs(t, err, lock.ErrLost)
			a.release(lease)
			w.sleep(time.Minute)
			assert.NoError(t, stolen.Err(), "the former holder released the lock of the stealer")
			assert.Equal(t, 2, len(a.seen()), "nothing more is said")
			stealer.release(stolen)
			w.mustBeFree()
		})
	}
}

func TestHeartbeatDelayedOncePerLease(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		a.acquire(lock.AcquireOptions{})
		a.forget()
		w.sleep(9 * time.Second)
		w.clock.Sleep(10 * time.Second) // exactly one interval late is not late
		w.sleep(time.Second)
		assert.Equal(t, 0, a.count(lock.EventWarning))
		a.forget()
		w.clock.Sleep(11 * time.Second)
		w.sleep(10 * time.Second)
		w.clock.Sleep(11 * time.Second)
		w.sleep(10 * time.Second)
		a.told(`
			41s warning heartbeat-delayed A{web-lock exclusive #1 since=0s ttl=25s expires=45s next=30s}
			41s renewed A{web-lock exclusive #1 since=0s ttl=25s expires=1m6s next=51s}
			41s renew-scheduled A{web-lock exclusive #1 since=0s ttl=25s expires=1m6s next=51s} in=10s
			1m2s renewed A{web-lock exclusive #1 since=0s ttl=25s expires=1m27s next=1m12s}
			1m2s renew-scheduled A{web-lock exclusive #1 since=0s ttl=25s expires=1m27s next=1m12s} in=10s
		`)
	})
}

func TestHolderThatSleptPastTTLGetsStale(t *testing.T) {
	for name, wake := range map[string]func(w *world, a *owner, l lock.Lease){
		"heartbeat": func(w *world, _ *owner, _ lock.Lease) { w.sleep(10 * time.Second) },
		"renew": func(w *world, a *owner, l lock.Lease) {
			_, err := l.Renew(w.Context())
			require.ErrorIs(w, err, lock.ErrStale)
		},
		"release": func(w *world, a *owner, l lock.Lease) { a.release(l) },
		"stolen meanwhile": func(w *world, _ *owner, _ lock.Lease) {
			w.tab("stealer").acquire(lock.AcquireOptions{Steal: true})
		},
		"closed": func(w *world, a *owner, _ lock.Lease) { require.NoError(w, a.Close(w.Context())) },
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, w *world) {
				var renewals atomic.Int64
				w.records.OnRenew = func(r lock.Record) error {
					if r.OwnerID == "a" {
						renewals.Add(1)
					}
					return nil
				}
				a := w.tab("a")
				lease, readonly := a.watched(lock.AcquireOptions{})
				w.clock.Sleep(time.Hour)
				wake(w, a, lease)
				at := w.clock.Now().Wall.Sub(w.start).String()
				a.told(at + ` error renew lease-stale
					` + at + ` readonly-entered renew-failed lease-stale`)
				a.over(lease, readonly, lock.ErrStale)
				assert.Zero(t, renewals.Load(), "a lease that ran out was renewed")
				w.sleep(time.Hour)
				assert.Len(t, a.seen(), 2)
				if name != "stolen meanwhile" {
					w.mustBeFree()
				}
			})
		})
	}
}

func TestWallClockSetBack(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		lease := a.acquire(lock.AcquireOptions{})
		w.sleep(5 * time.Second)
		w.clock.SetWall(-time.Hour)
		w.sleep(time.Minute)
		assert.Equal(t, 6, a.count(lock.EventRenewed))
		assert.Zero(t, a.count(lock.EventWarning)+a.count(lock.EventError))
		a.release(lease)
		w.mustBeFree()
	})
}

// A wall clock that is set back must not extend the TTL either.
func TestWallClockSetBackDoesNotExtendTTL(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		w.records.OnRenew = func(lock.Record) error { return errors.New("disk is broken") }
		lease, readonly := w.tab("a").watched(lock.AcquireOptions{})
		w.clock.SetWall(-time.Hour)
		w.sleep(25 * time.Second)
		require.ErrorIs(t, lease.Err(), lock.ErrStale)
		require.Len(t, readonly, 1)
		w.mustBeFree()
	})
}

func TestManualRenewalReschedulesTheHeartbeat(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		lease := a.acquire(lock.AcquireOptions{})
		a.forget()
		w.sleep(7 * time.Second)
		renewed, err := lease.Renew(t.Context())
		require.NoError(t, err)
		assert.Equal(t, lease.ID, renewed.ID)
		assert.Equal(t, lease.ExpiresAt.Add(7*time.Second), renewed.ExpiresAt)
		w.sleep(10 * time.Second)
		a.told(`
			7s renewed A{web-lock exclusive #1 since=0s ttl=25s expires=32s next=17s}
			7s renew-scheduled A{web-lock exclusive #1 since=0s ttl=25s expires=32s next=17s} in=10s
			17s renewed A{web-lock exclusive #1 since=0s ttl=25s expires=42s next=27s}
			17s renew-scheduled A{web-lock exclusive #1 since=0s ttl=25s expires=42s next=27s} in=10s
		`)
	})
}

func TestManualRenewalReturnsItsFailure(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		w.records.OnRenew = func(lock.Record) error { return errors.New("disk is busy") }
		a := w.tab("a")
		lease := a.acquire(lock.AcquireOptions{})
		_, err := lease.Renew(t.Context())
		require.ErrorIs(t, err, lock.ErrRenewFailed)
		assert.NoError(t, lease.Err(), "the heartbeat tries again")
	})
}

func TestCloseDuringARenewalIsNoFailure(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a, _ := w.hanging()
		lease := a.acquire(lock.AcquireOptions{})
		w.sleep(12 * time.Second)
		a.forget()
		require.NoError(t, a.Close(t.Context()))
		a.told(`
			12s release-requested A{web-lock exclusive #1 since=0s ttl=25s expires=25s next=10s}
			12s released A
		`)
		assert.NoError(t, lease.Err())
	})
}
