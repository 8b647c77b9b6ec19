package locks

import (
	"sync"
	"time"
)

// promises are when the leases end that this server granted or extended itself, as it tells their holders. What its watch
// shows of them comes later, on a slow machine much later, and must not add to their time.
type promises struct {
	mu    sync.Mutex
	until map[string]promise // by the key of the heartbeat, which a later lease of the same place has too
}

type promise struct {
	lease string
	until time.Time // on this machine's monotonic clock
}

// make notes a heartbeat before it is committed. Of several the latest counts: another one, whichever got into the store,
// is not recognised, and counts from when the watch shows it.
func (p *promises) make(c claim, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if key := c.beatKey(); until.After(p.until[key].until) {
		p.until[key] = promise{c.Lease, until}
	}
}

// of returns the promise that a heartbeat in the store is, if it is one.
func (p *promises) of(key string, stored time.Time) (time.Time, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if made, ok := p.until[key]; ok && made.until.UnixMilli() == stored.UnixMilli() {
		return made.until, true
	}
	return time.Time{}, false
}

// past returns the promise to a lease that is over.
func (p *promises) past(c claim) (time.Time, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	made := p.until[c.beatKey()]
	return made.until, made.lease == c.Lease && !made.until.After(time.Now())
}

// drop forgets a lease that has ended, or was not granted.
func (p *promises) drop(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.until, key)
}
