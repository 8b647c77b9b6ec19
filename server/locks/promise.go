package locks

import (
	"sync"
	"time"
)

// promises holds the expiry times of the leases that this server itself granted or extended, as their holders receive
// them. The watch shows these heartbeats later, on a slow machine much later. That delay must not extend the leases.
type promises struct {
	mu    sync.Mutex
	until map[string]promise // by the heartbeat's key, which a later lease of the same place shares
}

type promise struct {
	lease string
	until time.Time // on this machine's monotonic clock
}

// make records a heartbeat before its commit. Only the latest one counts. If another heartbeat reaches the store, it
// is not recognised, and its TTL counts from its arrival in the watch.
func (p *promises) make(c claim, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if key := c.beatKey(); until.After(p.until[key].until) {
		p.until[key] = promise{c.Lease, until}
	}
}

// of returns the promise that matches a heartbeat in the store.
func (p *promises) of(key string, stored time.Time) (time.Time, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if made, ok := p.until[key]; ok && made.until.UnixMilli() == stored.UnixMilli() {
		return made.until, true
	}
	return time.Time{}, false
}

// past returns the promise of a lease if it has expired.
func (p *promises) past(c claim) (time.Time, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	made := p.until[c.beatKey()]
	return made.until, made.lease == c.Lease && !made.until.After(time.Now())
}

// drop removes the promise of a lease that ended or was not granted.
func (p *promises) drop(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.until, key)
}
