package opfs

import (
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/lock"
)

// table is the content of the `.lock` file. Its methods are the transitions between
// tables; none of them touches a file or a clock.
type table struct {
	token    int64     // the highest that was ever handed out
	recovery *recovery // nil where the table is known to be whole
	queue    []*entry  // in the order of arrival, or of asking where that is known; who stole comes first
}

// entry is one request, or one lease whose lock is kept by another mechanism.
type entry struct {
	id     string
	client string // its file in .alive is open for as long as the entry may stand
	state  state
	wants  []lock.Want
	asked  int64 // Unix time in microseconds; 0 where it is not known
	lease  *lease
}

type state string

const (
	waiting  state = "waiting"
	granted  state = "granted"
	recorded state = "recorded" // a lease alone
	present  state = "present"  // the client is there; its id is that of the client
)

// bars reports whether an entry can bar the way of others.
func (e *entry) bars() bool { return e.state == granted || e.state == waiting }

// lease is a record with the time for which a renewal is good.
type lease struct {
	lock.Record
	ttl time.Duration
}

// recovery is the state of a table of which something may be missing: nobody is granted
// anything until every client that lives was seen, or until has passed.
type recovery struct {
	until time.Time
	seen  []string // clients whose entries are all there
}

func (e *entry) clone() *entry {
	c := *e
	c.wants = slices.Clone(e.wants)
	if e.lease != nil {
		l := *e.lease
		c.lease = &l
	}
	return &c
}

func (t *table) find(id string) *entry {
	for _, e := range t.queue {
		if e.id == id {
			return e
		}
	}
	return nil
}

func (t *table) remove(gone ...*entry) {
	t.queue = slices.DeleteFunc(t.queue, func(e *entry) bool { return slices.Contains(gone, e) })
}

// blockers returns the entries that bar the way of e: those that hold one of its names in a
// mode that conflicts, also behind it, if they have passed it while it stood still; and those
// before it, all of them where it is not in the queue yet, that await one.
func (t *table) blockers(e *entry) (found []*entry) {
	before := true
	for _, other := range t.queue {
		if other == e {
			before = false
		} else if (other.state == granted || before && other.bars()) && conflict(other, e) {
			found = append(found, other)
		}
	}
	return found
}

func conflict(a, b *entry) bool {
	return slices.ContainsFunc(a.wants, func(x lock.Want) bool {
		return slices.ContainsFunc(b.wants, func(y lock.Want) bool {
			return x.Name == y.Name && (x.Mode == lock.Exclusive || y.Mode == lock.Exclusive)
		})
	})
}

// lateness is by how much a request may have been made before another one that it goes before, in microseconds. Between
// clocks that differ by more, as before and after one was set, the order of arrival is the better one, and nobody is passed
// for longer.
const lateness = 100_000

// join puts e into the queue: before those who wait and are known to have asked later, up to the last one of whom that is
// not known. Where it stands among those who hold does not matter: they bar its way from anywhere.
func (t *table) join(e *entry) {
	at := len(t.queue)
	for i := at - 1; i >= 0; i-- {
		if other := t.queue[i]; other.state == waiting {
			if ahead := other.asked - e.asked; ahead <= 0 || ahead > lateness {
				break
			}
			at = i
		}
	}
	t.queue = slices.Insert(t.queue, at, e)
}

// steal grants e before all others and takes its names from those that hold them. The
// ones robbed keep what else they hold until they give it back themselves.
func (t *table) steal(e *entry) (robbed []*entry) {
	taken := func(w lock.Want) bool {
		return slices.ContainsFunc(e.wants, func(mine lock.Want) bool { return mine.Name == w.Name })
	}
	for _, other := range t.queue {
		if other.state == granted && slices.ContainsFunc(other.wants, taken) {
			other.wants = slices.DeleteFunc(other.wants, taken)
			other.lease = nil
			robbed = append(robbed, other)
		}
	}
	t.remove(slices.DeleteFunc(slices.Clone(robbed), func(e *entry) bool { return len(e.wants) > 0 })...)
	e.state = granted
	t.queue = slices.Insert(t.queue, 0, e)
	return robbed
}

// restore gives a client the entries that it had in an earlier state of the table. Others that hold what one of these held
// wait for it again.
func (t *table) restore(client string, before *table) {
	t.queue = slices.DeleteFunc(t.queue, func(e *entry) bool { return e.client == client })
	at := 0
	for _, e := range before.queue {
		if e.client != client {
			at = max(at, 1+slices.IndexFunc(t.queue, func(other *entry) bool { return other.id == e.id }))
			continue
		}
		for _, other := range t.queue {
			if e.state == granted && other.state == granted && other.client != client && conflict(other, e) {
				other.state = waiting
			}
		}
		t.queue = slices.Insert(t.queue, at, e)
		at++
	}
}

// next returns the waiting entries that nothing bars.
func (t *table) next() (free []*entry) {
	if t.recovery != nil {
		return nil
	}
	for _, e := range t.queue {
		if e.state == waiting && len(t.blockers(e)) == 0 {
			free = append(free, e)
		}
	}
	return free
}

// expired returns the entries whose lease ended before now: their owners may not write
// any more, and others need not wait for them.
func expired(entries []*entry, over func(*lease) bool) (found []*entry) {
	for _, e := range entries {
		if e.state == granted && e.lease != nil && over(e.lease) {
			found = append(found, e)
		}
	}
	return found
}

// lacks reports whether the table lacks entries of a client that nobody but the client
// ever removes: it is not the table that the client wrote to.
func (t *table) lacks(own []*entry) bool {
	return slices.ContainsFunc(own, func(e *entry) bool {
		return (e.state == waiting || e.state == present) && t.find(e.id) == nil
	})
}

// knows reports whether a client is in the table.
func (t *table) knows(client string) bool {
	return slices.ContainsFunc(t.queue, func(e *entry) bool { return e.client == client })
}

// agree makes the table and what a client knows of itself agree: what the table has of
// the client without its knowing is removed; what it lacks is put back where the table
// recovers and nobody else holds it. The rest is lost.
func (t *table) agree(client string, own []*entry) (changed bool) {
	known := func(id string) bool { return slices.ContainsFunc(own, func(e *entry) bool { return e.id == id }) }
	before := len(t.queue)
	t.queue = slices.DeleteFunc(t.queue, func(e *entry) bool { return e.client == client && !known(e.id) })
	changed = len(t.queue) != before
	for _, mine := range own {
		if t.recovery != nil && t.find(mine.id) == nil && t.putBack(mine) {
			changed = true
		}
	}
	return changed
}

// putBack adds an entry again, unless a client that was seen is granted what it holds.
// Entries of clients that were not seen come from a text that may be wrong: they yield.
func (t *table) putBack(e *entry) bool {
	if e.state != granted {
		t.queue = append(t.queue, e.clone())
		return true
	}
	var yield []*entry
	for _, other := range t.queue {
		if other.state == granted && conflict(other, e) {
			if slices.Contains(t.recovery.seen, other.client) {
				return false
			}
			yield = append(yield, other)
		}
	}
	t.remove(yield...)
	// Whoever holds came before all who wait.
	t.queue = slices.Insert(t.queue, 0, e.clone())
	if e.lease != nil {
		t.token = max(t.token, e.lease.Token)
	}
	return true
}
