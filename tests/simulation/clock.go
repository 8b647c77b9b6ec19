package simulation

import (
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/lock"
)

// machineClock is the clock of one machine. Its wall clock drifts and can be set. Its monotonic clock stops while the
// machine sleeps.
type machineClock struct {
	w     *world
	drift float64 // of the wall clock, as a share of the passing time

	mu    sync.Mutex
	set   time.Duration // how far the wall clock was set forward
	slept time.Duration
	since time.Time // when the machine fell asleep, or zero
	last  time.Time // when it was set
	back  bool      // it was set back
}

// now reads both clocks, whether or not the machine runs.
func (c *machineClock) now() lock.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	passed, slept := c.w.now(), c.slept
	if !c.since.IsZero() {
		slept += time.Since(c.since)
	}
	wall := passed + c.set + time.Duration(float64(passed)*c.drift)
	return lock.Instant{Wall: c.w.began.Add(wall).Round(0), Mono: passed - slept}
}

// setWall sets the wall clock forward, or back if d is negative.
func (c *machineClock) setWall(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set += d
	c.last = time.Now()
	c.back = c.back || d < 0
}

// suspend stops the monotonic clock. It reports whether the machine ran before.
func (c *machineClock) suspend() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.since.IsZero() {
		return false
	}
	c.since = time.Now()
	return true
}

// resume lets the monotonic clock go on.
func (c *machineClock) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slept += time.Since(c.since)
	c.since = time.Time{}
}

// sleeps reports whether the machine sleeps.
func (c *machineClock) sleeps() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.since.IsZero()
}

// setSince reports whether the wall clock was set since a moment.
func (c *machineClock) setSince(t time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.last.Before(t)
}

// wasSetBack reports whether the wall clock was ever set back.
func (c *machineClock) wasSetBack() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.back
}
