package simulation

import (
	"strings"
	"time"
)

// abandonedLimit is how long the server may keep a lease that no program has while all tabs run and the network works:
// the client releases it. A lease of a frozen or dead tab stays for its TTL.
const abandonedLimit = 10 * time.Second

// lookForAbandonedLeases looks for leases on the server without an owner.
func (c *checker) lookForAbandonedLeases(origins []*origin) {
	if c.service == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	excused := time.Now().Add(-serverTTL - slack)
	for _, at := range origins {
		if at.unreachedSince(excused) || at.disturbedSince(excused, true) || at.unrestSince(excused) {
			clear(c.abandoned)
			return
		}
	}
	has := make(map[int64]int)
	for _, b := range c.beliefs {
		has[b.lease.Token]++
	}
	claims := c.service.claims()
	for token := range c.abandoned {
		if len(claims[token]) <= has[token] {
			delete(c.abandoned, token)
		}
	}
	for token, leases := range claims {
		switch {
		case len(leases) <= has[token]:
		case c.abandoned[token].IsZero():
			c.abandoned[token] = time.Now()
		case time.Since(c.abandoned[token]) > abandonedLimit:
			c.w.found("abandoned", "the server keeps a lease with token %d that nobody has: %s", token, strings.Join(leases, ", or "))
			c.abandoned[token] = time.Now().Add(time.Hour)
		}
	}
}
