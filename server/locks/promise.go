package locks

import (
	"slices"
	"sync"
	"time"
)

// promises holds the expiry times of the leases that this server itself granted or extended, as their holders receive
// them. The watch shows these heartbeats later, on a slow machine much later. That delay must not extend the leases.
type promises struct {
	mu sync.Mutex
	// made contains the promises by the heartbeat's key. There may be several, because the next lease of a place may
	// begin before the watch shows the end of the last one.
	made map[string][]promise
}

// promise is the expiry time of a lease, on this machine's monotonic clock.
type promise struct {
	lease string
	until time.Time
}

// make records a heartbeat before its commit. Only the latest one of a lease counts. If another heartbeat reaches the
// store, it is not recognised, and its TTL counts from its arrival in the watch.
func (p *promises) make(c claim, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := c.beatKey()
	made := p.made[key]
	i := slices.IndexFunc(made, func(m promise) bool { return m.lease == c.Lease })
	switch {
	case i < 0:
		p.made[key] = append(made, promise{c.Lease, until})
	case until.After(made[i].until):
		made[i].until = until
	}
}

// of returns the promise that matches a heartbeat in the store.
func (p *promises) of(key string, stored time.Time) (time.Time, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.made[key] {
		if m.until.UnixMilli() == stored.UnixMilli() {
			return m.until, true
		}
	}
	return time.Time{}, false
}

// past returns the promise of a lease if it has expired.
func (p *promises) past(c claim) (time.Time, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.made[c.beatKey()] {
		if m.lease == c.Lease {
			return m.until, !m.until.After(time.Now())
		}
	}
	return time.Time{}, false
}

// drop removes the promise of a lease that ended or was not granted.
func (p *promises) drop(c claim) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keep(c.beatKey(), func(m promise) bool { return m.lease != c.Lease })
}

// sweep removes the promises that are over.
func (p *promises) sweep(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key := range p.made {
		p.keep(key, func(m promise) bool { return m.until.After(now) })
	}
}

// keep removes the other promises of a heartbeat's key.
func (p *promises) keep(key string, wanted func(promise) bool) {
	rest := slices.DeleteFunc(p.made[key], func(m promise) bool { return !wanted(m) })
	if len(rest) == 0 {
		delete(p.made, key)
	} else {
		p.made[key] = rest
	}
}
