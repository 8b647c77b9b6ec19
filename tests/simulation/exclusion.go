package simulation

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/lock"
)

// name is a name that a lease holds, with its mode.
type name struct {
	name      string
	exclusive bool
}

// names returns the names of a lease on the places of o: the place in its mode, and every place above it shared.
func names(o lock.AcquireOptions, slot int) (all []name) {
	paths := o.Paths
	if paths == nil {
		paths = [][]string{o.Path}
	}
	for _, path := range paths {
		for i := range path {
			all = append(all, name{"/" + strings.Join(path[:i], "/"), false})
		}
		at := "/" + strings.Join(path, "/")
		all = append(all, name{at, o.Mode != lock.Shared && o.Slots < 2})
		if o.Slots > 1 {
			all = append(all, name{at + "//slot " + strconv.Itoa(slot), true})
		}
	}
	return all
}

func conflict(a, b []name) bool {
	for _, x := range a {
		for _, y := range b {
			if x.name == y.name && (x.exclusive || y.exclusive) {
				return true
			}
		}
	}
	return false
}

// excludes reports whether two leases exclude each other. Both are on the server, or both are of one origin, and none is nested in the other.
func excludes(a, b *belief) bool {
	switch {
	case a.domain != b.domain && a.tab.at != b.tab.at, a.nestedIn(b), b.nestedIn(a):
		return false
	case a.domain != b.domain:
		return conflict(withoutSlots(a.names), withoutSlots(b.names))
	}
	return conflict(a.names, b.names)
}

// nestedIn reports whether a lease is the other one or nested in it.
func (b *belief) nestedIn(other *belief) bool {
	for ; b != nil; b = b.within {
		if b == other {
			return true
		}
	}
	return false
}

// withoutSlots returns the names of places. The server and an origin number the slots of a place differently.
func withoutSlots(names []name) []name {
	return slices.DeleteFunc(slices.Clone(names), func(n name) bool { return strings.Contains(n.name, "//slot") })
}

// notice is the maximum time until a running program notices that its lock was stolen.
const notice = 500 * time.Millisecond

// granted records a lease that a program has just received.
func (c *checker) granted(b *belief) {
	b.since = time.Now()
	_, b.sleeps = b.tab.slept()
	c.w.count("grants")
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, other := range c.beliefs {
		if !other.live() || !excludes(other, b) {
			continue
		}
		if c.mayNotKnow(other, b) {
			time.AfterFunc(notice, func() { c.both(other, b) })
			continue
		}
		c.w.found("exclusion", "%s was granted while %s holds", b, other)
	}
	c.rising(b)
	c.beliefs = append(c.beliefs, b)
}

// mayNotKnow reports whether a holder may still believe in its lease for a moment: the lease was stolen, or the tab
// has just resumed.
func (c *checker) mayNotKnow(holder, successor *belief) bool {
	return holder.tab.at == successor.tab.at && holder.tab.at.stolenSince(time.Now().Add(-notice)) || !holder.tab.runs(notice)
}

// both checks, a while after the second grant, whether two programs believe in leases that exclude each other.
func (c *checker) both(a, b *belief) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a.live() && b.live() && a.tab.runs(notice) && b.tab.runs(notice) {
		c.w.found("exclusion", "%s and %s both hold", a, b)
	}
}

// alone checks, when a user types in an editor, that no other program believes in a lease that excludes the editor's.
func (c *checker) alone(b *belief) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, other := range c.beliefs {
		if other != b && b.live() && other.live() && excludes(other, b) &&
			!c.mayNotKnow(other, b) && !c.mayNotKnow(b, other) {
			c.w.found("exclusion", "%s types while %s holds", b, other)
		}
	}
}

// woken checks, a while after a tab resumed, whether it still believes in a lease that another program has.
func (c *checker) woken(t *tab) {
	time.AfterFunc(notice, func() {
		c.mu.Lock()
		all := append([]*belief(nil), c.beliefs...)
		c.mu.Unlock()
		for _, a := range all {
			for _, b := range all {
				if a.tab == t && b.tab != t && excludes(a, b) {
					c.both(a, b)
				}
			}
		}
	})
}
