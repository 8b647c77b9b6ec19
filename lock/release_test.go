package lock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/lock"
)

func TestReleaseFailure(t *testing.T) {
	for _, force := range []bool{false, true} {
		virtual(t, func(t *testing.T, w *world) {
			jammed := errors.New("the file cannot be removed")
			w.records.OnRemove = func(lock.Record) error { return jammed }
			a := w.tab("a")
			lease := a.acquire(lock.AcquireOptions{})
			a.forget()
			err := lease.ReleaseWith(t.Context(), lock.ReleaseOptions{Force: force})
			if force {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, lock.ErrReleaseFailed)
				require.ErrorIs(t, err, jammed)
			}
			w.mustBeFree()
			w.sleep(time.Hour)
			a.told(`
				0s release-requested A{web-lock exclusive #1 since=0s ttl=25s expires=25s next=10s}
				0s error release release-failed
			`)
			assert.NoError(t, lease.Err(), "it was released")
			assert.NoError(t, lease.Release(t.Context()), "once more")
		})
	}
}

// Two calls release a lease at once, and one of them has Force. Each gets its own result.
func TestForceIsForOneCallOnly(t *testing.T) {
	for _, firstForces := range []bool{false, true} {
		virtual(t, func(t *testing.T, w *world) {
			w.records.OnRemove = func(lock.Record) error { time.Sleep(time.Second); return errors.New("jammed") }
			lease := w.tab("a").acquire(lock.AcquireOptions{})
			first, second := make(chan error, 1), make(chan error, 1)
			go func() { first <- lease.ReleaseWith(t.Context(), lock.ReleaseOptions{Force: firstForces}) }()
			synctest.Wait()
			go func() { second <- lease.ReleaseWith(t.Context(), lock.ReleaseOptions{Force: !firstForces}) }()
			forced, plain := second, first
			if firstForces {
				forced, plain = first, second
			}
			assert.NoError(t, <-forced)
			assert.ErrorIs(t, <-plain, lock.ErrReleaseFailed)
		})
	}
}

func TestReleaseIsBounded(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		hung := make(chan struct{})
		t.Cleanup(func() { close(hung) })
		b := w.backend("a")
		b.Records = recordsFunc{Records: w.records, remove: func(context.Context, lock.Record) error { <-hung; return nil }}
		a := w.join("a", b)
		lease := a.acquire(lock.AcquireOptions{})
		require.ErrorIs(t, lease.Release(t.Context()), lock.ErrReleaseFailed)
		assert.Equal(t, 5*time.Second, time.Since(w.start))
		w.mustBeFree()
	})
}

// A common mistake: the caller's context has ended before the release.
func TestReleaseContinuesAfterContextEnds(t *testing.T) {
	for range 50 {
		virtual(t, func(t *testing.T, w *world) {
			ctx, stop := context.WithCancel(t.Context())
			stop()
			lease := w.tab("a").acquire(lock.AcquireOptions{})
			if err := lease.Release(ctx); err != nil { // the release may have finished already
				require.ErrorIs(t, err, context.Canceled)
			}
			w.mustBeFree()
			require.NoError(t, lease.Release(ctx), "it is over")
		})
	}
}

func TestReleaseWhileARenewalHangs(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a, _ := w.hanging()
		lease := a.acquire(lock.AcquireOptions{})
		w.sleep(12 * time.Second)
		a.forget()
		require.NoError(t, lease.Release(t.Context()))
		a.told(`
			12s release-requested A{web-lock exclusive #1 since=0s ttl=25s expires=25s next=10s}
			12s released A
		`)
	})
}

func TestConcurrentReleases(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		lease := a.acquire(lock.AcquireOptions{})
		for range 10 {
			go func() { assert.NoError(t, lease.Release(t.Context())) }()
		}
		w.mustBeFree()
		assert.Equal(t, 1, a.count(lock.EventReleased))
	})
}

func TestCallsAfterTheEnd(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		lease := a.acquire(lock.AcquireOptions{})
		present, ok := a.Lease(lease.ID)
		require.True(t, ok)
		assert.Equal(t, lease, present)
		assert.Equal(t, []lock.Lease{lease}, a.Leases())
		a.release(lease)
		a.forget()
		_, err := lease.Renew(t.Context())
		assert.ErrorIs(t, err, lock.ErrLost)
		assert.ErrorContains(t, err, "released")
		a.release(lease)
		assert.NoError(t, lease.Err())
		assert.Empty(t, a.Leases())
		_, ok = a.Lease(lease.ID)
		assert.False(t, ok)
		a.told("")
	})
}

func TestZeroLeaseHasEnded(t *testing.T) {
	var lease lock.Lease
	select {
	case <-lease.Done():
	default:
		t.Error("not done")
	}
	assert.ErrorIs(t, lease.Err(), lock.ErrLost)
	assert.Equal(t, lease.Err(), context.Cause(lease.Context()))
	_, err := lease.Renew(t.Context())
	assert.ErrorIs(t, err, lock.ErrLost)
	assert.Equal(t, lock.OpRenew, failure(t, err).Operation)
	assert.NoError(t, lease.Release(t.Context()))
	assert.NoError(t, lease.ReleaseWith(t.Context(), lock.ReleaseOptions{Force: true}))
	assert.Empty(t, lease.Excludes())
	ctx := lock.Within(t.Context(), lease)
	assert.Equal(t, t.Context(), ctx, "nothing is nested in it")
}
