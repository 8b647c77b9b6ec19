package lock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/lock"
)

var errExecutor = errors.New("the executor failed")

func TestWithHeartbeatsWhileTheExecutorRuns(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		err := a.With(t.Context(), func(ctx context.Context, l lock.Lease) error {
			time.Sleep(time.Hour - time.Second)
			assert.NoError(t, l.Err())
			return ctx.Err()
		}, lock.WithOptions{})
		require.NoError(t, err)
		assert.Equal(t, 359, a.count(lock.EventRenewed))
		assert.Equal(t, lock.EventReleased, a.last().Type)
		w.mustBeFree()
	})
}

func TestWithAlwaysReleases(t *testing.T) {
	for name, c := range map[string]struct {
		executor func(stop func()) error
		is       error
	}{
		"returns":          {func(func()) error { return nil }, nil},
		"fails":            {func(func()) error { return errExecutor }, errExecutor},
		"caller cancelled": {func(stop func()) error { stop(); return errExecutor }, errExecutor},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, w *world) {
				a := w.tab("a")
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				var inner context.Context
				err := a.With(ctx, func(ctx context.Context, _ lock.Lease) error {
					inner = ctx
					assert.NoError(t, ctx.Err())
					return c.executor(stop)
				}, lock.WithOptions{})
				assert.Equal(t, c.is, err)
				assert.Error(t, inner.Err(), "the executor's context outlives it")
				assert.Equal(t, lock.EventReleased, a.last().Type)
				w.mustBeFree()
			})
		})
	}
}

func TestWithReleasesOnPanic(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		assert.PanicsWithValue(t, "boom", func() {
			_ = a.With(t.Context(), func(context.Context, lock.Lease) error { panic("boom") },
				lock.WithOptions{KeepOnError: true})
		})
		assert.Equal(t, lock.EventReleased, a.last().Type)
		w.mustBeFree()
	})
}

func TestWithKeepsOnError(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		opts := lock.WithOptions{KeepOnError: true}
		var kept lock.Lease
		err := a.With(t.Context(), func(_ context.Context, l lock.Lease) error { kept = l; return errExecutor }, opts)
		assert.Equal(t, errExecutor, err)
		w.sleep(time.Minute)
		assert.NoError(t, kept.Err())
		assert.Zero(t, a.count(lock.EventReleased))
		a.release(kept)

		require.NoError(t, a.With(t.Context(), func(context.Context, lock.Lease) error { return nil }, opts))
		w.mustBeFree() // only an error keeps it

		err = a.With(t.Context(), func(ctx context.Context, _ lock.Lease) error {
			w.tab("stealer").acquire(lock.AcquireOptions{Steal: true})
			<-ctx.Done()
			return ctx.Err()
		}, opts)
		assert.ErrorIs(t, err, lock.ErrLost, "a lost lease cannot be kept")
	})
}

func TestWithReleasesOnlyItsOwnLease(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		holder, a := w.tab("holder"), w.tab("a")
		lease := holder.acquire(lock.AcquireOptions{})
		err := a.With(t.Context(), func(context.Context, lock.Lease) error {
			t.Error("it ran without the lock")
			return nil
		}, lock.WithOptions{AcquireOptions: lock.AcquireOptions{IfAvailable: true}})
		require.ErrorIs(t, err, lock.ErrDenied)
		assert.NoError(t, lease.Err())
		assert.Zero(t, a.count(lock.EventReleaseRequested)+a.count(lock.EventReleased))
		record, ok := w.records.Present()
		assert.True(t, ok)
		assert.Equal(t, lease.ID, record.LeaseID)
	})
}

func TestWithFailsWhenTheLeaseEnds(t *testing.T) {
	for name, c := range map[string]struct {
		end      func(w *world)
		is       error
		executor error
	}{
		"lost":                     {func(w *world) { w.tab("stealer").acquire(lock.AcquireOptions{Steal: true}) }, lock.ErrLost, nil},
		"lost, executor fails":     {func(w *world) { w.tab("stealer").acquire(lock.AcquireOptions{Steal: true}) }, lock.ErrLost, errExecutor},
		"stale":                    {func(w *world) { w.clock.Sleep(time.Hour) }, lock.ErrStale, nil},
		"stale, executor fails":    {func(w *world) { w.clock.Sleep(time.Hour) }, lock.ErrStale, errExecutor},
		"stale, told by release":   {nil, lock.ErrStale, nil},
		"released by the executor": {nil, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, w *world) {
				a := w.tab("a")
				err := a.With(t.Context(), func(ctx context.Context, l lock.Lease) error {
					switch name {
					case "stale, told by release": // the executor returns before any look at the clock
						w.clock.Sleep(time.Hour)
						return nil
					case "released by the executor":
						a.release(l)
						<-ctx.Done()
						return nil
					}
					c.end(w)
					select {
					case <-ctx.Done():
					case <-time.After(2 * time.Hour):
					}
					assert.ErrorIs(t, context.Cause(ctx), c.is)
					return c.executor
				}, lock.WithOptions{})
				if c.is == nil {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, c.is)
				}
				if c.executor != nil {
					require.ErrorIs(t, err, c.executor)
				}
				assert.Equal(t, c.is == nil, a.count(lock.EventReleased) == 1)
			})
		})
	}
}

func TestWithReportsFailedRelease(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		w.records.OnRemove = func(lock.Record) error { return errors.New("jammed") }
		err := w.tab("a").With(t.Context(), func(context.Context, lock.Lease) error { return errExecutor }, lock.WithOptions{})
		assert.ErrorIs(t, err, lock.ErrReleaseFailed)
		assert.ErrorIs(t, err, errExecutor)
	})
}
