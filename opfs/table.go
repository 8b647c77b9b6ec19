package opfs

import (
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/lock"
)

// table is the content of the `.lock` file. Its methods are the transitions between
// tables; none of them touches a file or a clock.
type table struct {
	token    int64     // the highest ever handed out
	recovery *recovery // nil if the table is known to be whole
	queue    []*entry  // in order of arrival, or of asking if that is known; entries that stole come first
}

// entry is one request, or one lease whose lock another mechanism keeps.
type entry struct {
	id     string
	client string // its file in .alive is open for as long as the entry may exist
	state  state
	wants  []lock.Want
	asked  int64 // Unix time in microseconds; 0 if it is not known
	lease  *lease
}

type state string

const (
	waiting  state = "waiting"
	granted  state = "granted"
	recorded state = "recorded" // a lease alone
	present  state = "present"  // the client is there; the entry's id is the client's
)

// bars reports whether an entry can block others.
func (e *entry) bars() bool { return e.state == granted || e.state == waiting }

// lease is a record with the time that a renewal adds.
type lease struct {
	lock.Record
	ttl time.Duration
}

// recovery is the state of a table that may be incomplete: no request is granted until every living client was seen, or
// the time until has passed.
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

// insert puts e at a place in the queue. slices.Insert does the same, with more code in the Wasm.
func (t *table) insert(at int, e *entry) {
	t.queue = append(t.queue, e)
	copy(t.queue[at+1:], t.queue[at:])
	t.queue[at] = e
}

func (t *table) remove(gone ...*entry) {
	t.queue = slices.DeleteFunc(t.queue, func(e *entry) bool { return slices.Contains(gone, e) })
}

// blockers returns the entries that block e. These are the entries that hold one of its names in a conflicting mode;
// some of them may stand behind e, if they passed it while it was frozen. These are also the waiters before e that want
// one of its names, or all such waiters if e is not in the queue yet.
func (t *table) blockers(e *entry) (found []*entry) {
	before := true
	for _, other := range t.queue {
		if other == e {
			before = false
		} else if other.blocks(e, before) {
			found = append(found, other)
		}
	}
	return found
}

// blocks reports whether an entry that stands before another one, or behind it, blocks that one.
func (e *entry) blocks(waiter *entry, before bool) bool {
	return (e.state == granted || before && e.bars()) && conflict(e, waiter)
}

func conflict(a, b *entry) bool {
	return slices.ContainsFunc(a.wants, func(x lock.Want) bool {
		return slices.ContainsFunc(b.wants, func(y lock.Want) bool {
			return x.Name == y.Name && (x.Mode == lock.Exclusive || y.Mode == lock.Exclusive)
		})
	})
}

// lateness is how much later, in microseconds, a request that arrives first may have been made than one that it stays
// before. If the clocks differ by more, as after one was set, the order of arrival is used, and nobody is passed for
// longer.
const lateness = 100_000

// join puts e into the queue: before the waiters that are known to have asked later, up to the last one whose time is
// unknown. Its position relative to holders does not matter: they block it from any position.
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
	t.insert(at, e)
}

// heldByOther reports whether another client than those holds a name of e.
func (t *table) heldByOther(e *entry, clients []string) bool {
	return slices.ContainsFunc(t.queue, func(other *entry) bool {
		return other.state == granted && !slices.Contains(clients, other.client) &&
			slices.ContainsFunc(other.wants, func(w lock.Want) bool { return e.has(w.Name) })
	})
}

// steal grants e before all others and takes its names from their holders. These keep their other names until they
// release them.
func (t *table) steal(e *entry) (losers []*entry) {
	taken := func(w lock.Want) bool { return e.has(w.Name) }
	for _, other := range t.queue {
		if other.state == granted && slices.ContainsFunc(other.wants, taken) {
			other.wants = slices.DeleteFunc(other.wants, taken)
			other.lease = nil
			losers = append(losers, other)
		}
	}
	t.remove(slices.DeleteFunc(slices.Clone(losers), func(e *entry) bool { return len(e.wants) > 0 })...)
	e.state = granted
	t.insert(0, e)
	return losers
}

// restore gives a client the entries that it had in an earlier state of the table. Other clients that hold the names of
// these entries wait for them again.
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
		t.insert(at, e)
		at++
	}
}

// next returns the waiting entries that nothing blocks.
func (t *table) next() (free []*entry) {
	if t.recovery != nil {
		return nil
	}
	for i, e := range t.queue {
		before := func(other *entry) bool { return other.blocks(e, true) }
		behind := func(other *entry) bool { return other.blocks(e, false) }
		if e.state == waiting && !slices.ContainsFunc(t.queue[:i], before) && !slices.ContainsFunc(t.queue[i:], behind) {
			free = append(free, e)
		}
	}
	return free
}

// expired returns the entries whose lease has ended: their owners may no longer write, and others need not wait for
// them.
func expired(entries []*entry, over func(*lease) bool) (found []*entry) {
	for _, e := range entries {
		if e.state == granted && e.lease != nil && over(e.lease) {
			found = append(found, e)
		}
	}
	return found
}

// lacks reports whether the table lacks entries of a client that only the client itself removes: then it is not the
// table that the client wrote to.
func (t *table) lacks(own []*entry) bool {
	return slices.ContainsFunc(own, func(e *entry) bool {
		return (e.state == waiting || e.state == present) && t.find(e.id) == nil
	})
}

// knows reports whether a client is in the table.
func (t *table) knows(client string) bool {
	return slices.ContainsFunc(t.queue, func(e *entry) bool { return e.client == client })
}

// agree reconciles the table with what a client knows of itself. It removes the client's entries that the client does
// not know, and takes over those that the client made under an earlier id. It puts back a missing entry if the table
// recovers and nobody else holds the names. Other missing entries are lost.
func (t *table) agree(client string, own []*entry) (changed bool) {
	known := func(id string) bool { return slices.ContainsFunc(own, func(e *entry) bool { return e.id == id }) }
	before := len(t.queue)
	t.queue = slices.DeleteFunc(t.queue, func(e *entry) bool { return e.client == client && !known(e.id) })
	changed = len(t.queue) != before
	for _, mine := range own {
		if e := t.find(mine.id); e != nil {
			changed = changed || e.client != client
			e.client = client
		} else if t.recovery != nil && t.putBack(mine) {
			changed = true
		}
	}
	return changed
}

// putBack adds an entry again, unless a client that was seen is granted its names, or has a record of them. Entries of clients that were not
// seen come from a text that may be wrong, and are removed instead.
func (t *table) putBack(e *entry) bool {
	if e.lease != nil {
		t.token = max(t.token, e.lease.Token)
	}
	if e.state != granted {
		t.queue = append(t.queue, e.clone())
		return true
	}
	var yield []*entry
	for _, other := range t.queue {
		if other.state != waiting && other.client != e.client && conflict(other, e) {
			if slices.Contains(t.recovery.seen, other.client) {
				return false
			}
			yield = append(yield, other)
		}
	}
	t.remove(yield...)
	// A holder came before all waiters.
	t.insert(0, e.clone())
	return true
}
