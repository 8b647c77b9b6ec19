package rooms

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// fakeClock stands still until the test advances it.
type fakeClock struct {
	mu sync.Mutex
	at time.Time
}

func (c *fakeClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *fakeClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

func noSocket(string) bool { return false }
