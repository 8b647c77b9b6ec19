package lock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/lock"
)

func unsupported(lock.Request) error {
	return &lock.Error{Code: lock.CodeWebLockUnsupported, Detail: "navigator.locks is missing"}
}

// pair is a tab whose Web Locks do not work, with a `.lock` file as the second backend.
func (w *world) pair(id string) (web, file lock.Backend) {
	refusing := w.space.Client(id)
	refusing.Refuse = unsupported
	web, file = w.backend(id), w.backend(id)
	web.Locker = refusing
	file.Strategy = lock.FileLock
	return web, file
}

func TestFallback(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		web, file := w.pair("a")
		a := w.join("a", web, file)
		lease := a.acquire(lock.AcquireOptions{})
		assert.True(t, lease.Fallback)
		w.sleep(10 * time.Second)
		a.release(lease)
		a.told(`
			0s attempt web-lock retry=0
			0s error acquire web-lock-unsupported retryable
			0s attempt file-lock retry=0
			0s warning fallback-engaged A{file-lock exclusive #1 since=0s ttl=30s expires=30s next=10s}
			0s fallback-engaged A{file-lock exclusive #1 since=0s ttl=30s expires=30s next=10s}
			0s acquired A{file-lock exclusive #1 since=0s ttl=30s expires=30s next=10s}
			0s renew-scheduled A{file-lock exclusive #1 since=0s ttl=30s expires=30s next=10s} in=10s
			10s renewed A{file-lock exclusive #1 since=0s ttl=30s expires=40s next=20s}
			10s renew-scheduled A{file-lock exclusive #1 since=0s ttl=30s expires=40s next=20s} in=10s
			10s release-requested A{file-lock exclusive #1 since=0s ttl=30s expires=40s next=20s}
			10s released A
		`)
	})
}

func TestFallbackConflictDegradesOnce(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		other := w.tab("other").acquire(lock.AcquireOptions{})
		web, file := w.pair("a")
		inner := file.Locker
		file.Locker = lockerFunc(func(ctx context.Context, r lock.Request) (lock.Grant, error) {
			if r.IfAvailable {
				return nil, &lock.Error{Code: lock.CodeFallbackConflict, Detail: "the record bears another UUID"}
			}
			return inner.Request(ctx, r)
		})
		a := w.join("a", web, file)
		got := a.begin(t.Context(), lock.AcquireOptions{Backoff: exact})
		w.sleep(2 * time.Second)
		require.NoError(t, other.Release(t.Context()))
		require.NoError(t, (<-got).err)
		a.told(`
			0s attempt web-lock retry=0
			0s error acquire web-lock-unsupported retryable
			0s attempt file-lock retry=0
			0s error acquire fallback-conflict retryable
			0s warning fallback-degraded
			0s waiting retry=1 delay=1s
			1s attempt file-lock retry=1
			1s error acquire fallback-conflict retryable
			1s waiting retry=2 delay=1.5s
			2s attempt file-lock retry=2
			2s warning fallback-engaged A{file-lock exclusive #2 since=2s ttl=30s expires=32s next=12s}
			2s fallback-engaged A{file-lock exclusive #2 since=2s ttl=30s expires=32s next=12s}
			2s acquired A{file-lock exclusive #2 since=2s ttl=30s expires=32s next=12s}
			2s renew-scheduled A{file-lock exclusive #2 since=2s ttl=30s expires=32s next=12s} in=10s
		`)
	})
}

func TestNoUsableBackend(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		web, file := w.pair("a")
		file.Locker = lockerFunc(func(context.Context, lock.Request) (lock.Grant, error) {
			return nil, &lock.Error{Code: lock.CodeUnsupported, Detail: "no navigator.storage"}
		})
		a := w.join("a", web, file)
		_, err := a.Acquire(t.Context(), lock.AcquireOptions{})
		assert.ErrorIs(t, err, lock.ErrUnsupported)
		assert.ErrorContains(t, err, "no navigator.storage")
		a.told(`
			0s attempt web-lock retry=0
			0s error acquire web-lock-unsupported retryable
			0s attempt file-lock retry=0
			0s error acquire unsupported
			0s readonly-entered acquire-failed unsupported
		`)
		alone := w.join("b", web)
		_, err = alone.Acquire(t.Context(), lock.AcquireOptions{})
		assert.ErrorIs(t, err, lock.ErrWebLockUnsupported)
		alone.told(`
			0s attempt web-lock retry=0
			0s error acquire web-lock-unsupported retryable
			0s readonly-entered acquire-failed web-lock-unsupported retryable
		`)
	})
}

func TestPreferredStrategyIsNoFallback(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		web, file := w.pair("a")
		lease := w.join("a", web, file).acquire(lock.AcquireOptions{PreferredStrategy: lock.FileLock})
		assert.Equal(t, lock.FileLock, lease.Strategy)
		assert.False(t, lease.Fallback)
	})
}

func TestAdapterWarningIsAnEvent(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		a.Warn("project/.lock", "the file was damaged")
		require.Len(t, a.seen(), 1)
		e := a.last()
		assert.Equal(t, lock.Event{Type: lock.EventWarning, At: e.At, OwnerID: "a", Resource: "project/.lock",
			Warning: lock.WarnFallbackDegraded, Detail: "the file was damaged"}, e)
	})
}
