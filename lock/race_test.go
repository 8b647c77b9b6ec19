package lock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/lock"
)

const instant = 300 * time.Millisecond

// endsOfWait has the ways in which a wait ends after this time.
var endsOfWait = map[string]struct {
	opts lock.AcquireOptions
	ctx  func() (context.Context, func())
	is   error
}{
	"abort":    {ctx: cancelled(instant, context.Canceled), is: lock.ErrAborted},
	"deadline": {ctx: deadline(instant, nil), is: lock.ErrTimeout},
	"timeout":  {opts: lock.AcquireOptions{Timeout: instant}, is: lock.ErrTimeout},
	"retries":  {opts: lock.AcquireOptions{Backoff: lock.Backoff{InitialDelay: instant, Jitter: lock.NoJitter, MaxRetries: 1}}, is: lock.ErrTimeout},
	"close":    {is: lock.ErrAborted},
}

// In each round the holder releases at the very instant at which the waiter gives up. Either may win, but a grant must
// never be left without an owner.
func TestGrantRacesEndOfWait(t *testing.T) {
	for name, end := range endsOfWait {
		t.Run(name, func(t *testing.T) {
			granted, ended := 0, 0
			for round := range 200 {
				virtual(t, func(t *testing.T, w *world) {
					a, b := w.tab("a"), w.tab("b")
					lease := a.acquire(lock.AcquireOptions{})
					release := func() { time.Sleep(instant); a.release(lease) }
					if round%2 == 0 { // its timer is set first
						go release()
						synctest.Wait()
					}
					ctx, stop := context.Background(), func() {}
					if end.ctx != nil {
						ctx, stop = end.ctx()
					}
					defer stop()
					if name == "close" {
						go func() { time.Sleep(instant); assert.NoError(t, b.Close(context.Background())) }()
					}
					got := b.begin(ctx, end.opts)
					if round%2 == 1 {
						go release()
					}
					o := <-got
					assert.Equal(t, instant, o.at)
					if o.err == nil {
						granted++
						b.release(o.lease)
					} else {
						ended++
						require.ErrorIs(t, o.err, end.is)
					}
					w.mustBeFree()
					_, left := w.records.Present()
					assert.False(t, left, "a record leaked")
				})
			}
			t.Logf("granted %d times, ended %d times", granted, ended)
		})
	}
}

func TestLockerThatNeverAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		opts lock.AcquireOptions
		at   time.Duration
	}{
		"timeout":                  {lock.AcquireOptions{Timeout: 3 * time.Second}, 3 * time.Second},
		"no wait":                  {lock.AcquireOptions{Timeout: lock.NoWait}, 5 * time.Second},
		"default":                  {lock.AcquireOptions{}, lock.DefaultTimeout},
		"if available":             {lock.AcquireOptions{IfAvailable: true}, 5 * time.Second},
		"if available, and a time": {lock.AcquireOptions{IfAvailable: true, Timeout: time.Second}, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, w *world) {
				hung := make(chan struct{})
				b := w.backend("a")
				b.Locker = lockerFunc(func(context.Context, lock.Request) (lock.Grant, error) { <-hung; return nil, lock.ErrDenied })
				a := w.join("a", b)
				t.Cleanup(func() { close(hung) })
				o := <-a.begin(t.Context(), c.opts)
				require.ErrorIs(t, o.err, lock.ErrTimeout)
				assert.Equal(t, c.at, o.at)
			})
		})
	}
}

func TestLateGrantsAreReleased(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		b := w.backend("a")
		inner := b.Locker
		b.Locker = lockerFunc(func(ctx context.Context, r lock.Request) (lock.Grant, error) {
			time.Sleep(time.Minute) // and ignores ctx
			return inner.Request(context.WithoutCancel(ctx), r)
		})
		a := w.join("a", b)
		o := <-a.begin(t.Context(), lock.AcquireOptions{Timeout: time.Second})
		require.ErrorIs(t, o.err, lock.ErrTimeout)
		a.forget()
		w.sleep(time.Minute)
		w.mustBeFree()
		a.told("")
	})
}

// If a write of the record hangs, the caller gets its answer in time, and the next waiter gets the lock.
func TestHangingRecordsDoNotBlockCallers(t *testing.T) {
	for _, c := range []struct {
		opts lock.AcquireOptions
		at   time.Duration
	}{
		{lock.AcquireOptions{Timeout: 3 * time.Second}, 3 * time.Second},
		{lock.AcquireOptions{Timeout: lock.NoWait}, 5 * time.Second},
		{lock.AcquireOptions{Timeout: time.Hour, IfAvailable: true}, 5 * time.Second},
		{lock.AcquireOptions{Timeout: time.Hour, Backoff: exact}, 4*35*time.Second + 4750*time.Millisecond}, // including the retries
	} {
		virtual(t, func(t *testing.T, w *world) {
			hung := make(chan struct{})
			hang := func(context.Context, lock.Record) error { <-hung; return nil }
			b := w.backend("a")
			b.Records = recordsFunc{Records: w.records, claim: hang, remove: hang}
			a := w.join("a", b)
			t.Cleanup(func() { close(hung) })
			o := <-a.begin(t.Context(), c.opts)
			require.ErrorIs(t, o.err, lock.ErrTimeout)
			assert.Equal(t, c.at, o.at)
			w.sleep(10 * time.Second)
			w.mustBeFree()
		})
	}
}

// A holder whose lock is stolen before it has its token must not get a lease with a token above the new holder's. It
// waits for the next grant.
func TestStolenDuringClaim(t *testing.T) {
	for _, wait := range []bool{true, false} {
		virtual(t, func(t *testing.T, w *world) {
			b := w.backend("a")
			b.Records = recordsFunc{Records: w.records, claim: func(context.Context, lock.Record) error { time.Sleep(time.Second); return nil }}
			a, stealer := w.join("a", b), w.tab("stealer")
			got := a.begin(t.Context(), lock.AcquireOptions{Backoff: exact, IfAvailable: !wait})
			stolen := stealer.acquire(lock.AcquireOptions{Steal: true})
			w.sleep(2500 * time.Millisecond)
			assert.Zero(t, a.count(lock.EventAcquired))
			require.NoError(t, stolen.Err())
			if !wait {
				require.ErrorIs(t, (<-got).err, lock.ErrDenied)
				return
			}
			stealer.release(stolen)
			o := <-got
			require.NoError(t, o.err)
			assert.Greater(t, o.lease.Token, stolen.Token)
			a.told(`
				0s attempt web-lock retry=0
				1s error acquire acquire-denied retryable
				1s waiting retry=1 delay=1s
				2s attempt web-lock retry=1
				2s error acquire acquire-denied retryable
				2s waiting retry=2 delay=1.5s
				2.5s attempt web-lock retry=2
				3.5s acquired A{web-lock exclusive #3 since=2.5s ttl=25s expires=27.5s next=13.5s}
				3.5s renew-scheduled A{web-lock exclusive #3 since=2.5s ttl=25s expires=27.5s next=13.5s} in=10s
			`)
			a.release(o.lease)
			w.mustBeFree()
		})
	}
}

// A client steals, and then its record fails. It does not steal again, but waits as every other client.
func TestClientDoesNotStealTwice(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a, next := w.tab("a"), w.tab("next")
		victim := a.acquire(lock.AcquireOptions{})
		b := w.backend("stealer")
		tried := false
		b.Records = recordsFunc{Records: w.records, claim: func(context.Context, lock.Record) error {
			if tried {
				return nil
			}
			tried = true
			return lock.ErrTimeout
		}}
		waiting := next.begin(t.Context(), patient)
		got := w.join("stealer", b).begin(t.Context(), lock.AcquireOptions{Steal: true, Backoff: patient.Backoff})
		require.ErrorIs(t, victim.Err(), lock.ErrLost)
		successor := <-waiting
		require.NoError(t, successor.err)
		w.sleep(time.Minute)
		require.NoError(t, successor.lease.Err())
		assert.Empty(t, got)
		next.release(successor.lease)
		require.NoError(t, (<-got).err)
	})
}

func TestCloseReleasesEverything(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a, b := w.tab("a"), w.tab("b")
		lease := a.acquire(lock.AcquireOptions{})
		got := b.begin(t.Context(), lock.AcquireOptions{})
		require.NoError(t, b.Close(t.Context()))
		require.ErrorIs(t, (<-got).err, lock.ErrAborted)
		a.forget()
		require.NoError(t, a.Close(t.Context()))
		a.told(`
			0s release-requested A{web-lock exclusive #1 since=0s ttl=25s expires=25s next=10s}
			0s released A
		`)
		assert.NoError(t, lease.Err())
		w.mustBeFree()
		_, err := a.Acquire(t.Context(), lock.AcquireOptions{})
		require.ErrorIs(t, err, lock.ErrAborted)
		assert.ErrorContains(t, err, "closed")
		require.NoError(t, a.Close(t.Context()), "closing again")
		assert.Len(t, a.seen(), 2, "no event comes after the end")
	})
}
