package autosave

import (
	"sync/atomic"
	"time"
)

// changes knows which changes of the page no snapshot contains. Its methods may be called from any goroutine. They neither
// allocate nor wait.
type changes struct {
	began time.Time    // a nanosecond before the Saver was made
	since atomic.Int64 // the first change that no snapshot contains, in nanoseconds since began; 0: none
	last  atomic.Int64 // the last change
	marks atomic.Int64 // number of changes; times are too coarse to distinguish two of them
}

// now returns the time since began, in nanoseconds. It never returns 0.
func (c *changes) now() int64 { return int64(time.Since(c.began)) }

// mark records a change, and reports whether it is the first one that no snapshot contains.
func (c *changes) mark() (first bool) {
	now := c.now()
	c.last.Store(now)
	first = c.since.Load() == 0 && c.since.CompareAndSwap(0, now)
	c.marks.Add(1) // after since: a counted mark is dirty
	return first
}

// dirty reports whether there is a change that no snapshot contains.
func (c *changes) dirty() bool { return c.since.Load() != 0 }

// count returns the number of changes so far.
func (c *changes) count() int64 { return c.marks.Load() }

// take returns the first change that no snapshot contains, or the present if nothing has changed, and forgets it. It counts the
// changes first. A change between the two steps leads to one write too many, never to one too few.
func (c *changes) take() (since, marks int64) {
	marks = c.marks.Load()
	if since = c.since.Swap(0); since == 0 {
		since = c.now()
	}
	return since, marks
}

// keep makes the page dirty since then, if it is not dirty already.
func (c *changes) keep(since int64) { c.since.CompareAndSwap(0, since) }

// forget makes the page clean, because its text is saved or replaced.
func (c *changes) forget() { c.since.Store(0) }

// forgetKept undoes keep, if no snapshot was taken since.
func (c *changes) forgetKept(since int64) { c.since.CompareAndSwap(since, 0) }

// due returns the time of the next save: after a pause in typing, but not later than idle after the first change.
func (c *changes) due(pause, idle time.Duration) time.Time {
	return c.began.Add(min(time.Duration(c.last.Load())+pause, time.Duration(c.since.Load())+idle))
}
