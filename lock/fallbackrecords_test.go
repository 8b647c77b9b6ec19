package lock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/wait"
	"github.com/holdfast-dev/holdfast/lock"
)

// A lock that needs no record is neither refused nor delayed for want of one. Its token comes from the clock, and the
// next lease tries the records again.
func TestFallbackRecords(t *testing.T) {
	full := errors.New("the storage is full")
	newer := &lock.Error{Code: lock.CodeFallbackConflict, Err: lock.ErrDenied} // the records were written by a newer version
	for name, c := range map[string]struct {
		claim func(context.Context) error
		at    time.Duration
		told  error
	}{
		"refused": {func(context.Context) error { return full }, 0, full},
		"newer":   {func(context.Context) error { return newer }, 0, newer},
		"hangs":   {func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }, 3 * time.Second, nil},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, w *world) {
				broken := true
				var warned []error
				best := recordsFunc{Records: w.records, claim: func(ctx context.Context, _ lock.Record) error {
					if broken {
						return c.claim(ctx)
					}
					return nil
				}}
				b := w.backend("a")
				b.Records = lock.WithFallback(best, &lock.WallTokens{Clock: lock.SystemClock{}}, func(err error) { warned = append(warned, err) })
				a := w.join("a", b)
				begun := time.Now()
				lease := a.acquire(lock.AcquireOptions{})
				assert.GreaterOrEqual(t, time.Since(begun), c.at)
				assert.Less(t, time.Since(begun), c.at+10*time.Millisecond)
				assert.GreaterOrEqual(t, lease.Token, begun.UnixMilli())
				require.Len(t, warned, 1)
				if c.told != nil {
					assert.ErrorIs(t, warned[0], c.told)
				}
				livesWithoutRecord(t, a, lease)
				broken = false
				acquiresWithRecord(t, a)
				assert.Len(t, warned, 1)
			})
		})
	}
}

// The record of a client that the Locker does not know denies the lock: the acquisition waits until the record is gone.
func TestRecordThatDeniesIsWaitedFor(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		denials := 0
		best := recordsFunc{Records: w.records, claim: func(context.Context, lock.Record) error {
			if denials++; denials < 3 {
				return lock.ErrDenied
			}
			return nil
		}}
		b := w.backend("a")
		b.Records = lock.WithFallback(best, &lock.WallTokens{Clock: lock.SystemClock{}}, func(err error) { t.Error(err) })
		acquiresWithRecord(t, w.join("a", b))
		assert.Equal(t, 3, denials)
	})
}

func livesWithoutRecord(t *testing.T, a *owner, lease lock.Lease) {
	t.Helper()
	a.w.sleep(time.Minute)
	require.NoError(t, lease.Err(), "it is renewed without a record")
	_, there := a.w.records.Present()
	assert.False(t, there)
	a.release(lease)
	a.w.mustBeFree()
}

func acquiresWithRecord(t *testing.T, a *owner) {
	t.Helper()
	lease := a.acquire(lock.AcquireOptions{})
	record, there := a.w.records.Present()
	require.True(t, there)
	assert.Equal(t, lease.ID, record.LeaseID)
	a.w.sleep(time.Minute)
	record, _ = a.w.records.Present()
	assert.True(t, record.ExpiresAt.After(time.Now()))
	a.release(lease)
	_, there = a.w.records.Present()
	assert.False(t, there)
}

// aheadRecords are Records whose tokens are ahead of the clock, as after many grants in one millisecond, and which then fail.
type aheadRecords struct {
	lock.WallTokens
	by     time.Duration
	failed bool
}

func (r *aheadRecords) Claim(context.Context, lock.Record, bool) (int64, error) {
	if r.failed {
		return 0, errors.New("the storage is full")
	}
	return time.Now().Add(r.by).UnixMilli(), nil
}

// A token that is read from the clock is higher than the previous one, which came from a record and was ahead of the
// clock.
func TestFallbackTokensRise(t *testing.T) {
	for _, by := range []time.Duration{0, time.Millisecond, 2 * time.Millisecond, 9 * time.Millisecond, 150 * time.Millisecond} {
		t.Run(by.String(), func(t *testing.T) {
			virtual(t, func(t *testing.T, w *world) {
				best := &aheadRecords{by: by}
				b := w.backend("a")
				b.Records = lock.WithFallback(best, &lock.WallTokens{Clock: lock.SystemClock{}}, nil)
				a := w.join("a", b)
				begun := time.Now()
				first := a.acquire(lock.AcquireOptions{})
				assert.LessOrEqual(t, time.Since(begun), by)
				a.release(first)
				best.failed = true
				begun = time.Now()
				second := a.acquire(lock.AcquireOptions{})
				assert.Less(t, time.Since(begun), 10*time.Millisecond)
				assert.Greater(t, second.Token, first.Token)
				a.release(second)
			})
		})
	}
}

// Clients of two strategies share the records. A client of the file gets a token that is ahead of the clock; then the records fail for a
// client of Web Locks, whose token is higher nevertheless.
func TestTokensRiseBetweenStrategies(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		clock := &lock.WallTokens{Clock: lock.SystemClock{}}
		r := lock.Record{AcquiredAt: time.Now(), ExpiresAt: time.Now().Add(time.Minute)}
		best := &aheadRecords{by: 20 * time.Millisecond}
		first, err := lock.NearClock(best, clock).Claim(t.Context(), r, false)
		require.NoError(t, err)
		best.failed = true
		second, err := lock.WithFallback(best, clock, nil).Claim(t.Context(), r, false)
		require.NoError(t, err)
		assert.Greater(t, second, first)
	})
}

// A client that gives up while its token is ahead of the clock has no lease: the next token, if it comes from the clock,
// would not be greater.
func TestGivenUpBeforeTheClockReachesTheToken(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		records := lock.WithFallback(&aheadRecords{by: 50 * time.Millisecond}, &lock.WallTokens{Clock: lock.SystemClock{}}, nil)
		ctx, stop := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer stop()
		_, err := records.Claim(ctx, lock.Record{AcquiredAt: time.Now(), ExpiresAt: time.Now().Add(time.Minute)}, false)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		token, err := records.Claim(t.Context(), lock.Record{AcquiredAt: time.Now(), ExpiresAt: time.Now().Add(time.Minute)}, false)
		require.NoError(t, err)
		assert.LessOrEqual(t, token, time.Now().Add(2*time.Millisecond).UnixMilli())
	})
}

// nap is the clock of a page that is frozen for a while. It reads no clock meanwhile.
type nap struct{ from, to time.Time }

func (c nap) Now() lock.Instant {
	if now := time.Now(); now.After(c.from) && now.Before(c.to) {
		time.Sleep(c.to.Sub(now))
	}
	return lock.SystemClock{}.Now()
}

// A page is frozen while it claims its record, for longer than it waits for a record. Its token comes from the record all
// the same: the storage can be read, and the clock may have been set back.
func TestFreezeIsNoUnreadableRecord(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		clock := nap{w.start, w.start.Add(20 * time.Second)}
		best := recordsFunc{Records: w.records, claim: func(ctx context.Context, _ lock.Record) error {
			time.Sleep(time.Millisecond)
			clock.Now()
			return wait.For(ctx, time.Millisecond)
		}}
		records := lock.WithFallback(best, &lock.WallTokens{Clock: clock}, func(err error) { t.Errorf("falls back: %v", err) })
		token, err := records.Claim(t.Context(), lock.Record{AcquiredAt: time.Now(), ExpiresAt: time.Now().Add(time.Minute)}, false)
		require.NoError(t, err)
		assert.Equal(t, int64(1), token)
	})
}
