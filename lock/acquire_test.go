package lock_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/lock"
)

func TestWebLockAcquireRenewRelease(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		lease := a.acquire(lock.AcquireOptions{})
		record, ok := w.records.Present()
		require.True(t, ok)
		assert.Equal(t, lock.Record{Resource: "project", LeaseID: lease.ID, OwnerID: "a", OwnerName: "tab a", Token: 1,
			AcquiredAt: w.start, ExpiresAt: w.start.Add(25 * time.Second), TTL: 25 * time.Second, Mode: lock.Exclusive}, normal(record))
		w.sleep(20 * time.Second)
		a.release(lease)
		a.told(`
			0s attempt web-lock retry=0
			0s acquired A{web-lock exclusive #1 since=0s ttl=25s expires=25s next=10s}
			0s renew-scheduled A{web-lock exclusive #1 since=0s ttl=25s expires=25s next=10s} in=10s
			10s renewed A{web-lock exclusive #1 since=0s ttl=25s expires=35s next=20s}
			10s renew-scheduled A{web-lock exclusive #1 since=0s ttl=25s expires=35s next=20s} in=10s
			20s renewed A{web-lock exclusive #1 since=0s ttl=25s expires=45s next=30s}
			20s renew-scheduled A{web-lock exclusive #1 since=0s ttl=25s expires=45s next=30s} in=10s
			20s release-requested A{web-lock exclusive #1 since=0s ttl=25s expires=45s next=30s}
			20s released A
		`)
		_, ok = w.records.Present()
		assert.False(t, ok, "the record stayed")
		w.mustBeFree()
	})
}

// normal returns r with times that == can compare.
func normal(r lock.Record) lock.Record {
	r.AcquiredAt, r.ExpiresAt = r.AcquiredAt.Local(), r.ExpiresAt.Local()
	return r
}

func TestRenewScheduledAndRenewedAreOneIntervalApart(t *testing.T) {
	for _, interval := range []time.Duration{time.Second, 10 * time.Second, 24 * time.Second} {
		virtual(t, func(t *testing.T, w *world) {
			// Records that answer at once, and slow ones.
			slow := recordsFunc{Records: w.records,
				claim: func(context.Context, lock.Record) error { time.Sleep(7 * time.Millisecond); return nil },
				renew: func(context.Context, lock.Record) error { time.Sleep(5 * time.Millisecond); return nil }}
			b := w.backend("a")
			b.Records = slow
			a := w.join("a", b)
			lease := a.acquire(lock.AcquireOptions{HeartbeatInterval: interval})
			w.sleep(10 * interval)
			a.release(lease)
			var scheduled lock.Event
			renewed := 0
			for _, e := range a.seen() {
				switch e.Type {
				case lock.EventRenewScheduled:
					scheduled = e
				case lock.EventRenewed:
					renewed++
					assert.Equal(t, scheduled.NextHeartbeatIn+5*time.Millisecond, e.At.Sub(scheduled.At))
				}
			}
			assert.GreaterOrEqual(t, renewed, 9)
		})
	}
}

// busy is a clock on a machine that is so busy that a millisecond passes between any two readings.
type busy struct{ readings *atomic.Int64 }

func (c busy) Now() lock.Instant {
	late := time.Duration(c.readings.Add(1)) * time.Millisecond
	now := lock.SystemClock{}.Now()
	return lock.Instant{Wall: now.Wall.Add(late), Mono: now.Mono + late}
}

func TestNextHeartbeatCountsFromTheEvent(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		var mu sync.Mutex
		var events []lock.Event
		m, err := lock.NewManager(lock.Config{OwnerID: "a", Clock: busy{new(atomic.Int64)}, Backends: []lock.Backend{w.backend("a")}})
		require.NoError(t, err)
		m.Subscribe(func(e lock.Event) {
			mu.Lock()
			defer mu.Unlock()
			events = append(events, e)
		})
		_, err = m.Acquire(t.Context(), lock.AcquireOptions{})
		require.NoError(t, err)
		w.sleep(25 * time.Second)
		require.NoError(t, m.Close(t.Context()))
		scheduled := 0
		for _, e := range events {
			if e.Type == lock.EventRenewScheduled {
				scheduled++
				assert.Equal(t, e.NextHeartbeatIn, e.Lease.NextHeartbeatAt.Sub(e.At))
			}
		}
		assert.Equal(t, 3, scheduled)
	})
}

func TestWaitingEventsShowBackoff(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		w.tab("a").acquire(lock.AcquireOptions{})
		b := w.tab("b")
		readonly := make(chan lock.Event, 2)
		_, err := b.Acquire(t.Context(), lock.AcquireOptions{Backoff: exact, OnReadonly: func(e lock.Event) { readonly <- e }})
		require.ErrorIs(t, err, lock.ErrTimeout)
		b.told(`
			0s attempt web-lock retry=0
			0s error acquire acquire-denied retryable
			0s waiting retry=1 delay=1s
			1s attempt web-lock retry=1
			1s error acquire acquire-denied retryable
			1s waiting retry=2 delay=1.5s
			2.5s attempt web-lock retry=2
			2.5s error acquire acquire-denied retryable
			2.5s waiting retry=3 delay=2.25s
			4.75s attempt web-lock retry=3
			4.75s error acquire acquire-timeout retryable
			4.75s readonly-entered acquire-failed acquire-timeout retryable
		`)
		require.Len(t, readonly, 1, "OnReadonly is called once")
		assert.Equal(t, b.last(), <-readonly)
		assert.Contains(t, err.Error(), "backoff.maxRetries")
	})
}

func TestAnnouncedDelayIsTheOneWaited(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		w.tab("a").acquire(lock.AcquireOptions{})
		b := w.tab("b")
		_, err := b.Acquire(t.Context(), lock.AcquireOptions{Backoff: lock.Backoff{MaxRetries: 12}})
		require.ErrorIs(t, err, lock.ErrTimeout)
		var waiting lock.Event
		attempts := 0
		for _, e := range b.seen() {
			switch e.Type {
			case lock.EventWaiting:
				waiting = e
			case lock.EventAttempt:
				if attempts++; e.Retry > 0 {
					assert.Equal(t, waiting.Retry, e.Retry)
					assert.Equal(t, waiting.Delay, e.At.Sub(waiting.At))
				}
			}
		}
		assert.Equal(t, 13, attempts)
	})
}

func TestGrantEndsTheWaitAtOnce(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a, b := w.tab("a"), w.tab("b")
		lease := a.acquire(lock.AcquireOptions{})
		got := b.begin(t.Context(), lock.AcquireOptions{Backoff: exact})
		w.sleep(1700 * time.Millisecond)
		a.release(lease)
		won := <-got
		require.NoError(t, won.err)
		assert.Equal(t, 1700*time.Millisecond, won.at)
		b.told(`
			0s attempt web-lock retry=0
			0s error acquire acquire-denied retryable
			0s waiting retry=1 delay=1s
			1s attempt web-lock retry=1
			1s error acquire acquire-denied retryable
			1s waiting retry=2 delay=1.5s
			1.7s attempt web-lock retry=2
			1.7s acquired A{web-lock exclusive #2 since=1.7s ttl=25s expires=26.7s next=11.7s}
			1.7s renew-scheduled A{web-lock exclusive #2 since=1.7s ttl=25s expires=26.7s next=11.7s} in=10s
		`)
	})
}

// A grant that arrives at the instant of a retry belongs to that retry, without a denial before. This also holds for
// the last retry.
func TestGrantAtTheInstantOfTheLastRetry(t *testing.T) {
	for range 50 {
		virtual(t, func(t *testing.T, w *world) {
			a, b := w.tab("a"), w.tab("b")
			lease := a.acquire(lock.AcquireOptions{})
			got := b.begin(t.Context(), lock.AcquireOptions{Backoff: lock.Backoff{Jitter: lock.NoJitter, MaxRetries: 1}})
			go func() { time.Sleep(time.Second); a.release(lease) }()
			if o := <-got; o.err == nil {
				b.told(`
					0s attempt web-lock retry=0
					0s error acquire acquire-denied retryable
					0s waiting retry=1 delay=1s
					1s attempt web-lock retry=1
					1s acquired A{web-lock exclusive #2 since=1s ttl=25s expires=26s next=11s}
					1s renew-scheduled A{web-lock exclusive #2 since=1s ttl=25s expires=26s next=11s} in=10s
				`)
				b.release(o.lease)
			} else {
				require.ErrorIs(t, o.err, lock.ErrTimeout)
			}
			w.mustBeFree()
		})
	}
}

func TestWaitersAreServedInOrder(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		lease := w.tab("a").acquire(lock.AcquireOptions{})
		b := w.tab("b").begin(t.Context(), lock.AcquireOptions{})
		c := w.tab("c").begin(t.Context(), lock.AcquireOptions{})
		require.NoError(t, lease.Release(t.Context()))
		second := <-b
		require.NoError(t, second.err)
		assert.Empty(t, c)
		require.NoError(t, second.lease.Release(t.Context()))
		require.NoError(t, (<-c).err)
	})
}

var errChanged = errors.New("changed my mind")

// acquireErrors has the ways in which an acquisition fails while another owner holds the lock.
var acquireErrors = []struct {
	name   string
	opts   lock.AcquireOptions
	ctx    func() (context.Context, func())
	at     time.Duration
	is     error
	says   string
	script string
}{
	{name: "timeout", opts: lock.AcquireOptions{Timeout: 500 * time.Millisecond, Backoff: exact},
		at: 500 * time.Millisecond, is: lock.ErrTimeout, says: "timeoutMs (500)", script: `
		0s attempt web-lock retry=0
		0s error acquire acquire-denied retryable
		0s waiting retry=1 delay=1s
		500ms error acquire acquire-timeout retryable
		500ms readonly-entered acquire-failed acquire-timeout retryable`},
	{name: "no waiting", opts: lock.AcquireOptions{Timeout: lock.NoWait},
		is: lock.ErrTimeout, says: "timeoutMs is 0", script: `
		0s attempt web-lock retry=0
		0s error acquire acquire-timeout retryable
		0s readonly-entered acquire-failed acquire-timeout retryable`},
	{name: "if available", opts: lock.AcquireOptions{IfAvailable: true},
		is: lock.ErrDenied, says: "acquire-denied", script: `
		0s attempt web-lock retry=0
		0s error acquire acquire-denied retryable
		0s readonly-entered acquire-failed acquire-denied retryable`},
	{name: "abort", opts: lock.AcquireOptions{Backoff: exact}, ctx: cancelled(1200*time.Millisecond, errChanged),
		at: 1200 * time.Millisecond, is: lock.ErrAborted, says: "changed my mind", script: `
		0s attempt web-lock retry=0
		0s error acquire acquire-denied retryable
		0s waiting retry=1 delay=1s
		1s attempt web-lock retry=1
		1s error acquire acquire-denied retryable
		1s waiting retry=2 delay=1.5s
		1.2s error acquire aborted
		1.2s readonly-entered acquire-failed aborted`},
	{name: "abort for an uncomparable reason", opts: lock.AcquireOptions{Backoff: exact}, ctx: cancelled(0, reasons{errChanged}),
		is: lock.ErrAborted, says: "reasons", script: `
		0s attempt web-lock retry=0
		0s error acquire aborted
		0s readonly-entered acquire-failed aborted`},
	{name: "abort because a lease was lost", opts: lock.AcquireOptions{Backoff: exact}, ctx: cancelled(0, lock.ErrLost),
		is: lock.ErrAborted, says: "lease-lost", script: `
		0s attempt web-lock retry=0
		0s error acquire aborted
		0s readonly-entered acquire-failed aborted`},
	{name: "the caller's deadline", opts: lock.AcquireOptions{Backoff: exact}, ctx: deadline(300*time.Millisecond, nil),
		at: 300 * time.Millisecond, is: lock.ErrTimeout, says: "the caller's deadline", script: `
		0s attempt web-lock retry=0
		0s error acquire acquire-denied retryable
		0s waiting retry=1 delay=1s
		300ms error acquire acquire-timeout retryable
		300ms readonly-entered acquire-failed acquire-timeout retryable`},
	{name: "the caller's deadline with a cause", opts: lock.AcquireOptions{Backoff: exact}, ctx: deadline(300*time.Millisecond, errChanged),
		at: 300 * time.Millisecond, is: lock.ErrTimeout, says: "changed my mind", script: `
		0s attempt web-lock retry=0
		0s error acquire acquire-denied retryable
		0s waiting retry=1 delay=1s
		300ms error acquire acquire-timeout retryable
		300ms readonly-entered acquire-failed acquire-timeout retryable`},
}

func TestAcquireErrors(t *testing.T) {
	for _, c := range acquireErrors {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, func(t *testing.T, w *world) {
				a, b := w.tab("a"), w.tab("b")
				lease := a.acquire(lock.AcquireOptions{})
				ctx, stop := context.Background(), func() {}
				if c.ctx != nil {
					ctx, stop = c.ctx()
				}
				defer stop()
				o := <-b.begin(ctx, c.opts)
				require.ErrorIs(t, o.err, c.is)
				assert.ErrorContains(t, o.err, c.says)
				assert.Equal(t, c.at, o.at)
				assert.Zero(t, o.lease)
				b.told(c.script)
				a.release(lease)
				w.mustBeFree()
			})
		})
	}
}

// reasons is an error for which == panics.
type reasons []error

func (reasons) Error() string { return "reasons" }

func cancelled(after time.Duration, why error) func() (context.Context, func()) {
	return func() (context.Context, func()) {
		ctx, stop := context.WithCancelCause(context.Background())
		if after == 0 {
			stop(why)
		}
		timer := time.AfterFunc(after, func() { stop(why) })
		return ctx, func() { timer.Stop(); stop(nil) }
	}
}

func deadline(after time.Duration, why error) func() (context.Context, func()) {
	return func() (context.Context, func()) {
		ctx, stop := context.WithTimeoutCause(context.Background(), after, why)
		return ctx, stop
	}
}

func TestUnlimitedRetriesWaitUntilTheTimeLimit(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		w.tab("a").acquire(lock.AcquireOptions{})
		o := <-w.tab("b").begin(t.Context(), lock.AcquireOptions{Backoff: lock.Backoff{MaxRetries: lock.Unlimited}})
		require.ErrorIs(t, o.err, lock.ErrTimeout)
		assert.Equal(t, lock.DefaultTimeout, o.at)
	})
}

func TestSharedLeasesAdmitEachOther(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		b := w.backend("a")
		b.Records = nil
		one := w.join("a", b).acquire(lock.AcquireOptions{Mode: lock.Shared})
		b.Locker = w.space.Client("b")
		two := w.join("b", b).acquire(lock.AcquireOptions{Mode: lock.Shared})
		assert.Equal(t, []lock.Mode{lock.Shared, lock.Shared}, []lock.Mode{one.Mode, two.Mode})
		_, err := w.tab("c").Acquire(t.Context(), lock.AcquireOptions{IfAvailable: true})
		assert.ErrorIs(t, err, lock.ErrDenied)
	})
}
