package autosave

import (
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/holdfast-dev/holdfast/lock"
)

// delays returns a function that yields the delay before each further attempt, by the
// policy of [lock.Backoff] and with its defaults. There is no last attempt: what is not
// saved is not given up.
func delays(b lock.Backoff) (next func() time.Duration) {
	orDefault(&b.MaxDelay, 30*time.Second)
	orDefault(&b.InitialDelay, min(time.Second, b.MaxDelay))
	orDefault(&b.Multiplier, 1.5)
	orDefault(&b.Jitter, 0.5)
	policy := &backoff.ExponentialBackOff{
		InitialInterval:     b.InitialDelay,
		RandomizationFactor: max(b.Jitter, 0),
		Multiplier:          b.Multiplier,
		MaxInterval:         b.MaxDelay,
	}
	policy.Reset()
	return func() time.Duration { return min(policy.NextBackOff(), b.MaxDelay) }
}
