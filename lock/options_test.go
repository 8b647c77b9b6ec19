package lock_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/lock"
)

func TestInvalidOptions(t *testing.T) {
	type opts = lock.AcquireOptions
	backoff := func(b lock.Backoff) opts { return opts{Backoff: b} }
	for _, c := range []struct {
		option string
		opts   opts
	}{
		{"mode", opts{Mode: "upgrade"}},
		{"ttlMs", opts{TTL: -1}},
		{"heartbeatIntervalMs", opts{HeartbeatInterval: -time.Second}},
		{"heartbeatIntervalMs", opts{HeartbeatInterval: 25 * time.Second}},
		{"heartbeatIntervalMs", opts{TTL: 10 * time.Second}},
		{"heartbeatIntervalMs", opts{TTL: 5 * time.Second, HeartbeatInterval: 5 * time.Second}},
		{"timeoutMs", opts{Timeout: -2}},
		{"steal", opts{Steal: true, Mode: lock.Shared}},
		{"steal", opts{Steal: true, IfAvailable: true}},
		{"preferredStrategy", opts{PreferredStrategy: "carrier-pigeon"}},
		{"backoff.initialDelayMs", backoff(lock.Backoff{InitialDelay: -1})},
		{"backoff.initialDelayMs", backoff(lock.Backoff{InitialDelay: time.Minute})},
		{"backoff.initialDelayMs", backoff(lock.Backoff{InitialDelay: 2, MaxDelay: 1})},
		{"backoff.maxDelayMs", backoff(lock.Backoff{MaxDelay: -1})},
		{"backoff.multiplier", backoff(lock.Backoff{Multiplier: 0.5})},
		{"backoff.multiplier", backoff(lock.Backoff{Multiplier: -1.5})},
		{"backoff.multiplier", backoff(lock.Backoff{Multiplier: math.NaN()})},
		{"backoff.jitter", backoff(lock.Backoff{Jitter: 1.1})},
		{"backoff.jitter", backoff(lock.Backoff{Jitter: -0.5})},
		{"backoff.jitter", backoff(lock.Backoff{Jitter: math.NaN()})},
		{"backoff.maxRetries", backoff(lock.Backoff{MaxRetries: -2})},
	} {
		virtual(t, func(t *testing.T, w *world) {
			b := w.backend("a")
			b.Locker = lockerFunc(func(context.Context, lock.Request) (lock.Grant, error) {
				t.Errorf("asked although %+v", c.opts)
				return nil, lock.ErrDenied
			})
			a := w.join("a", b)
			c.opts.OnReadonly = func(lock.Event) { t.Error("read-only for an invalid option") }
			lease, err := a.Acquire(t.Context(), c.opts)
			require.ErrorIs(t, err, lock.ErrInvalidArgument, "%+v", c.opts)
			assert.Zero(t, lease)
			assert.Regexp(t, "^invalid-argument: "+c.option+" ", err.Error())
			assert.False(t, failure(t, err).Retryable())

			err = a.With(t.Context(), func(context.Context, lock.Lease) error { t.Error("ran"); return nil },
				lock.WithOptions{AcquireOptions: c.opts})
			require.ErrorIs(t, err, lock.ErrInvalidArgument)
			a.told("")
		})
	}
}

func TestManagerNeedsABackend(t *testing.T) {
	_, err := lock.NewManager(lock.Config{})
	require.ErrorIs(t, err, lock.ErrInvalidArgument)
	assert.ErrorContains(t, err, "strategy")
}

func TestDefaults(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		lease := w.tab("a").acquire(lock.AcquireOptions{})
		assert.Equal(t, 25*time.Second, lease.TTL)
		assert.Equal(t, 10*time.Second, lease.HeartbeatInterval)
		assert.Equal(t, lock.Exclusive, lease.Mode)
		own := w.join("b", w.backend("b"))
		_, err := own.Acquire(t.Context(), lock.AcquireOptions{IfAvailable: true,
			Backoff: lock.Backoff{MaxDelay: 200 * time.Millisecond}}) // shorter than the default first delay
		assert.ErrorIs(t, err, lock.ErrDenied)
	})
}

// failure returns the *lock.Error that err wraps.
func failure(t *testing.T, err error) *lock.Error {
	t.Helper()
	found := new(lock.Error)
	require.ErrorAs(t, err, &found)
	return found
}
