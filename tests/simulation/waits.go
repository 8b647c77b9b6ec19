package simulation

import (
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/lock"
)

// waiter is a pending acquisition.
type waiter struct {
	tab    *tab
	domain string
	remote bool
	names  []name
	since  time.Time
	idle   time.Duration // how long nothing has justified the wait
}

const (
	// watchEvery is the interval at which the checker looks at waiters.
	watchEvery = 5 * time.Second
	// patience is how long a waiter may wait although no running program holds the lock and nothing was granted: a
	// frozen holder is taken over from after its TTL, and so is a frozen tab that takes over.
	patience = lock.DefaultTTL + 60*time.Second
)

// waiting records an acquisition until the returned function is called.
func (c *checker) waiting(x *waiter) (done func()) {
	x.since = time.Now()
	c.mu.Lock()
	c.waits[x] = true
	c.mu.Unlock()
	return func() {
		c.mu.Lock()
		delete(c.waits, x)
		c.mu.Unlock()
	}
}

// watch looks for waiters that are not served and for leases without an owner, until stop is closed.
func (c *checker) watch(origins []*origin, stop <-chan struct{}) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			c.lookAtWaiters()
			c.lookForAbandonedLeases(origins)
		case <-stop:
			return
		}
	}
}

func (c *checker) lookAtWaiters() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.move()
	for x := range c.waits {
		if !x.tab.runs(watchEvery) || c.justified(x) {
			x.idle = 0
			continue
		}
		if x.idle += watchEvery; x.idle > patience {
			c.w.found("wakeup", "%s waits for %v for %s, and nobody who runs has had it for %s; held: %s",
				x.tab.name, x.names, time.Since(x.since), x.idle, x.tab.at.held())
			x.idle = -time.Hour
		}
	}
}

// justified reports whether a wait is justified: a running program holds the lock or held it a moment ago, the lock
// has moved on, a holder without a record is frozen, which is not taken over from, or faults keep everybody out. Nothing
// that happens on the server or on other machines justifies a wait behind a frozen tab of the same origin. A waiter without a server may wait
// behind a tab that waits for the server.
func (c *checker) justified(x *waiter) bool {
	recently := time.Now().Add(-watchEvery)
	at := x.tab.at
	switch {
	case at.disturbedSince(recently, false), at.stolenSince(recently), c.moved[at], at.keptByFrozen(x.remote):
		return true
	case at.heldByFrozen():
		return false
	case (x.remote || c.mixed) && (at.disturbedSince(recently, true) || at.unreachedSince(recently) || c.movedThere):
		return true
	}
	return slices.ContainsFunc(c.beliefs, func(b *belief) bool {
		return (b.domain == x.domain || c.mixed) && conflict(b.names, x.names) && (b.live() || b.since.After(recently))
	})
}

// move lets files expire, and records for each origin whether its locks have moved on since the last look.
func (c *checker) move() {
	if c.service != nil {
		there := strings.Join(c.service.left(), " ")
		c.heldThere, c.movedThere = there, there != c.heldThere
	}
	for at, last := range c.held {
		at.expireFiles()
		now := at.held()
		c.held[at], c.moved[at] = now, now != last
	}
}
