package sessions

import (
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// idleAge is how long a key that does not ask is remembered. By then its bucket is full again.
	idleAge = 5 * time.Minute
	// maxKeys bounds the memory; beyond it any may go.
	maxKeys = 200_000
)

// Limiter counts requests by key, each key by itself: a token bucket.
type Limiter struct {
	limit rate.Limit
	burst int

	mu     sync.Mutex
	keys   map[string]*bucket
	tidied time.Time
}

type bucket struct {
	*rate.Limiter
	used time.Time
}

// NewLimiter allows each key so many requests a second, and a burst at once. A rate of 0 or less allows everything.
func NewLimiter(perSecond float64, burst int) *Limiter {
	limit := rate.Limit(perSecond)
	if perSecond <= 0 {
		limit = rate.Inf
	}
	return &Limiter{limit: limit, burst: burst, keys: map[string]*bucket{}}
}

// Allow counts a request, or says after how many whole seconds one will be allowed again.
func (l *Limiter) Allow(key string, now time.Time) (retryAfter int, ok bool) {
	if l.limit == rate.Inf {
		return 0, true
	}
	l.mu.Lock()
	b := l.keys[key]
	if b == nil {
		b = &bucket{Limiter: rate.NewLimiter(l.limit, l.burst)}
		l.keys[key] = b
	}
	b.used = now
	if now.Sub(l.tidied) > time.Minute || len(l.keys) > maxKeys {
		l.tidy(now)
	}
	l.mu.Unlock()
	if b.AllowN(now, 1) {
		return 0, true
	}
	return int(math.Ceil(max(1, 1/float64(l.limit)))), false
}

func (l *Limiter) tidy(now time.Time) {
	l.tidied = now
	for key, b := range l.keys {
		if now.Sub(b.used) > idleAge {
			delete(l.keys, key)
		}
	}
	for key := range l.keys {
		if len(l.keys) <= maxKeys {
			return
		}
		delete(l.keys, key) // a flood of made-up sessions
	}
}
