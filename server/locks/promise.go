package locks

import (
	"sync"
	"time"
)

// promises are when the leases end that this server granted or extended itself, as it tells their holders. What its watch
// shows of them comes later, on a slow machine much later, and must not add to their time.
type promises struct {
	mu    sync.Mutex
	until map[string]time.Time // by the key of the heartbeat, on this machine's monotonic clock
}

// make notes a heartbeat before it is committed. Of several the latest counts: another one, whichever got into the store,
// is not recognised, and counts from when the watch shows it.
func (p *promises) make(key string, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if until.After(p.until[key]) {
		p.until[key] = until
	}
}

// of returns the promise that a heartbeat in the store is, if it is one.
func (p *promises) of(key string, stored time.Time) (time.Time, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if until, ok := p.until[key]; ok && until.UnixMilli() == stored.UnixMilli() {
		return until, true
	}
	return time.Time{}, false
}

// past returns the promise of a heartbeat that is over.
func (p *promises) past(key string) (time.Time, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	until, ok := p.until[key]
	return until, ok && !until.After(time.Now())
}

// drop forgets a lease that has ended, or was not granted.
func (p *promises) drop(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.until, key)
}
