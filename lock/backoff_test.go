package lock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

func TestBackoffGrowsByItsMultiplier(t *testing.T) {
	next := Backoff{Jitter: NoJitter}.withDefaults().Delays()
	for _, want := range []int{1000, 1500, 2250, 3375} {
		assert.Equal(t, time.Duration(want)*time.Millisecond, next())
	}
	for range 20 {
		next()
	}
	assert.Equal(t, 30*time.Second, next())
}

func TestBackoffStaysWithinBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(int64(time.Millisecond), int64(time.Hour)).Draw(t, "max")
		b := Backoff{
			MaxDelay:     time.Duration(limit),
			InitialDelay: time.Duration(rapid.Int64Range(int64(time.Millisecond), limit).Draw(t, "initial")),
			Multiplier:   rapid.Float64Range(1, 10).Draw(t, "multiplier"),
			Jitter:       rapid.OneOf(rapid.Just(NoJitter), rapid.Float64Range(0.001, 1)).Draw(t, "jitter"),
		}.withDefaults()
		if err := b.check(); err != nil {
			t.Fatalf("refused: %v", err)
		}
		next := b.Delays()
		base, jitter := float64(b.InitialDelay), max(b.Jitter, 0)
		for i := range 30 {
			d := next()
			// Each step rounds to nanoseconds, of at least a million.
			low, high := base*(1-jitter)*(1-1e-4), base*(1+jitter)*(1+1e-4)+1
			if float64(d) < min(low, float64(b.MaxDelay)) || float64(d) > high || d > b.MaxDelay || d < 0 {
				t.Fatalf("delay %d is %v: not in [%v, %v] or above %v", i, d, low, high, b.MaxDelay)
			}
			base = min(base*b.Multiplier, float64(b.MaxDelay))
		}
	})
}

func TestBackoffJitters(t *testing.T) {
	next := Backoff{Multiplier: 1, MaxDelay: time.Hour}.withDefaults().Delays()
	low, high := time.Hour, time.Duration(0)
	for range 1000 {
		d := next()
		low, high = min(low, d), max(high, d)
	}
	assert.Less(t, low, 600*time.Millisecond)
	assert.Greater(t, high, 1400*time.Millisecond)
}

func TestBackoffDefaults(t *testing.T) {
	assert.Equal(t, Backoff{InitialDelay: time.Second, Multiplier: 1.5, MaxDelay: 30 * time.Second, Jitter: 0.5, MaxRetries: 3},
		Backoff{}.withDefaults())
	short := Backoff{MaxDelay: time.Millisecond}.withDefaults()
	assert.Equal(t, time.Millisecond, short.InitialDelay)
	assert.Nil(t, short.check())
	assert.False(t, Backoff{MaxRetries: Unlimited}.spent(1_000_000))
}
