package locktest

import (
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/lock"
)

// Clock is the system clock with two adjustments. SetWall sets the wall clock forward or back, as a user or a time
// server does. Sleep lets the wall clock run while the monotonic one stops, as the sleep of a machine does.
type Clock struct {
	mu   sync.Mutex
	wall time.Duration
}

// Now reads both clocks.
func (c *Clock) Now() lock.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := lock.SystemClock{}.Now()
	now.Wall = now.Wall.Add(c.wall)
	return now
}

// Sleep sets the wall clock forward by d; the monotonic one stops.
func (c *Clock) Sleep(d time.Duration) { c.SetWall(d) }

// SetWall sets the wall clock forward, or back if d is negative.
func (c *Clock) SetWall(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall += d
}
