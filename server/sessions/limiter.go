package sessions

import (
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// idleAge is the minimum time for which a key without requests is remembered. By then its bucket is full again.
	idleAge = 5 * time.Minute
	// maxKeys bounds the memory: when there are twice as many keys, the limiter forgets the older half.
	maxKeys = 100_000
)

// Limiter counts requests by key, with a token bucket for each key. The cost of a request does not depend on the number of keys.
type Limiter struct {
	limit rate.Limit
	burst int

	mu sync.Mutex
	// Keys that were used since the last turn are in recent. A turn forgets the former ones and makes the recent ones former.
	recent, former map[string]*rate.Limiter
	turned         time.Time
}

// NewLimiter allows each key so many requests a second, and a burst at once. A rate of 0 or less allows everything.
func NewLimiter(perSecond float64, burst int) *Limiter {
	limit := rate.Limit(perSecond)
	if perSecond <= 0 {
		limit = rate.Inf
	}
	return &Limiter{limit: limit, burst: burst, recent: map[string]*rate.Limiter{}}
}

// Allow counts a request, or says after how many whole seconds one will be allowed again.
func (l *Limiter) Allow(key string, now time.Time) (retryAfter int, ok bool) {
	return l.allow(key, now, 1)
}

// AllowMore is Allow for a request that was allowed and counts as n further ones. With them it never counts as more than the burst.
func (l *Limiter) AllowMore(key string, now time.Time, n int) (retryAfter int, ok bool) {
	return l.allow(key, now, min(n, l.burst-1))
}

func (l *Limiter) allow(key string, now time.Time, n int) (retryAfter int, ok bool) {
	if l.limit == rate.Inf || l.bucket(key, now).AllowN(now, n) {
		return 0, true
	}
	return int(math.Ceil(max(1, float64(n)/float64(l.limit)))), false
}

// Known reports whether a key has asked lately.
func (l *Limiter) Known(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.limit == rate.Inf || l.recent[key] != nil || l.former[key] != nil
}

func (l *Limiter) bucket(key string, now time.Time) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.recent) >= maxKeys || now.Sub(l.turned) > idleAge {
		l.former, l.recent, l.turned = l.recent, map[string]*rate.Limiter{}, now
	}
	b := l.recent[key]
	if b == nil {
		if b = l.former[key]; b == nil {
			b = rate.NewLimiter(l.limit, l.burst)
		}
		l.recent[key] = b
	}
	return b
}
