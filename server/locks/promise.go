package locks

import (
	"maps"
	"sync"
	"time"
)

// promises holds the expiry times of the leases that this server itself granted or extended, as their holders receive
// them. The watch shows these heartbeats later, on a slow machine much later. That delay must not extend the leases.
type promises struct {
	mu sync.Mutex
	// until is on this machine's monotonic clock: by the heartbeat's key and by lease, because the next lease of a
	// place may begin before the watch shows the end of the last one.
	until map[string]map[string]time.Time
}

// make records a heartbeat before its commit. Only the latest one of a lease counts. If another heartbeat reaches the
// store, it is not recognised, and its TTL counts from its arrival in the watch.
func (p *promises) make(c claim, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := c.beatKey()
	if p.until[key] == nil {
		p.until[key] = map[string]time.Time{}
	}
	if until.After(p.until[key][c.Lease]) {
		p.until[key][c.Lease] = until
	}
}

// of returns the promise that matches a heartbeat in the store.
func (p *promises) of(key string, stored time.Time) (time.Time, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, until := range p.until[key] {
		if until.UnixMilli() == stored.UnixMilli() {
			return until, true
		}
	}
	return time.Time{}, false
}

// past returns the promise of a lease if it has expired.
func (p *promises) past(c claim) (time.Time, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	until, ok := p.until[c.beatKey()][c.Lease]
	return until, ok && !until.After(time.Now())
}

// drop removes the promise of a lease that ended or was not granted.
func (p *promises) drop(c claim) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := c.beatKey()
	if delete(p.until[key], c.Lease); len(p.until[key]) == 0 {
		delete(p.until, key)
	}
}

// sweep removes the promises that are over.
func (p *promises) sweep(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, leases := range p.until {
		maps.DeleteFunc(leases, func(_ string, until time.Time) bool { return !until.After(now) })
		if len(leases) == 0 {
			delete(p.until, key)
		}
	}
}
