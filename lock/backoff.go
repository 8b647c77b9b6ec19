package lock

import (
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Backoff says how long to wait between attempts. The zero value is the default.
type Backoff struct {
	InitialDelay time.Duration // default 1 s, or MaxDelay if that is shorter
	Multiplier   float64       // default 1.5
	// MaxDelay is never exceeded, jitter included. Default 30 s.
	MaxDelay time.Duration
	// Jitter is the share of each delay that is random: a delay is multiplied by a
	// factor from [1-Jitter, 1+Jitter]. Default 0.5, NoJitter for none.
	Jitter float64
	// MaxRetries is the number of attempts after the first. Default 3. Unlimited means as many as the time limit
	// allows.
	MaxRetries int
}

const (
	// NoJitter as Backoff.Jitter makes every delay exact.
	NoJitter float64 = -1
	// Unlimited as Backoff.MaxRetries leaves only the time limit.
	Unlimited = -1
)

func (b Backoff) withDefaults() Backoff {
	orDefault(&b.MaxDelay, 30*time.Second)
	orDefault(&b.InitialDelay, min(time.Second, max(b.MaxDelay, 0)))
	orDefault(&b.Multiplier, 1.5)
	orDefault(&b.Jitter, 0.5)
	orDefault(&b.MaxRetries, 3)
	return b
}

func (b Backoff) check() *Error {
	switch {
	case b.InitialDelay < 0:
		return invalid("backoff.initialDelayMs", "must not be negative")
	case b.MaxDelay < 0:
		return invalid("backoff.maxDelayMs", "must not be negative")
	case b.InitialDelay > b.MaxDelay:
		return invalid("backoff.initialDelayMs", "must not be longer than backoff.maxDelayMs")
	case !(b.Multiplier >= 1):
		return invalid("backoff.multiplier", "must be at least 1")
	case b.Jitter != NoJitter && !(b.Jitter >= 0 && b.Jitter <= 1):
		return invalid("backoff.jitter", "must be from 0 to 1")
	case b.MaxRetries < 0 && b.MaxRetries != Unlimited:
		return invalid("backoff.maxRetries", "must not be negative")
	}
	return nil
}

// Delays returns a function that yields the delay before each further attempt, with defaults for unset fields. It does
// not enforce MaxRetries: the caller counts the attempts.
func (b Backoff) Delays() (next func() time.Duration) {
	b = b.withDefaults()
	policy := &backoff.ExponentialBackOff{
		InitialInterval:     b.InitialDelay,
		RandomizationFactor: max(b.Jitter, 0),
		Multiplier:          b.Multiplier,
		MaxInterval:         b.MaxDelay,
	}
	policy.Reset()
	return func() time.Duration { return min(policy.NextBackOff(), b.MaxDelay) }
}

func (b Backoff) spent(retries int) bool {
	return b.MaxRetries != Unlimited && retries > b.MaxRetries
}

func orDefault[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}
