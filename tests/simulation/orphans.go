package simulation

import (
	"strings"
	"time"
)

// orphanLimit is how long the server may keep a lease that no program has while all tabs run and the network works:
// the client releases it. A lease of a frozen or dead tab stays for its TTL.
const orphanLimit = 10 * time.Second

// lookForOrphans looks for leases on the server without an owner.
func (c *checker) lookForOrphans(origins []*origin) {
	if c.service == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	excused := time.Now().Add(-serverTTL - slack)
	for _, at := range origins {
		if at.unreachedSince(excused) || at.disturbedSince(excused, true) || at.unrestSince(excused) {
			clear(c.orphans)
			return
		}
	}
	has := make(map[int64]int)
	for _, b := range c.beliefs {
		has[b.lease.Token]++
	}
	claims := c.service.claims()
	for token := range c.orphans {
		if len(claims[token]) <= has[token] {
			delete(c.orphans, token)
		}
	}
	for token, leases := range claims {
		switch {
		case len(leases) <= has[token]:
		case c.orphans[token].IsZero():
			c.orphans[token] = time.Now()
		case time.Since(c.orphans[token]) > orphanLimit:
			c.w.found("orphan", "the server keeps a lease with token %d that nobody has: %s", token, strings.Join(leases, ", or "))
			c.orphans[token] = time.Now().Add(time.Hour)
		}
	}
}
