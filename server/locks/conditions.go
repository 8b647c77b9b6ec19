package locks

import (
	"slices"

	"github.com/holdfast-dev/holdfast/server/kv"
)

// preconditions holds the conditions that a claim needs in a transaction, and the reads that find its conflicts.
type preconditions struct {
	conditions []kv.Cond
	reads      []kv.Op
	names      []string // of the conditions: an ancestor of several paths counts once
}

// usual is the capacity for the conditions of a lock on a document.
const usual = 6

// maxNamed is the maximum number of conflicts that are read and named at each place.
const maxNamed = 50

// clear requires that no lease conflicts with the claim.
func (w *preconditions) clear(c claim) {
	for _, p := range c.Paths {
		at := node(claimPrefix, p)
		switch {
		case c.Mode == Shared:
			w.none(at + exclusiveMark)
		case c.Slots > 1:
			// Other slots of the same number are allowed; nothing else at or below the place is.
			slots, own := at+c.slotsMark(), at+c.mark()
			w.between(at, slots)
			read := kv.ReadSomeUnder(slots, maxNamed)
			if c.manySlots() {
				read = kv.Read(own) // all writes would wait while the store reads the others
			}
			w.add(own, kv.Absent(own), read)
			w.between(slots[:len(slots)-1]+"$", at[:len(at)-1]+"0") // after these slots, up to the next sibling
		default:
			w.none(at)
		}
		for _, above := range p.ancestors() {
			w.none(node(claimPrefix, above) + exclusiveMark)
		}
	}
}

// manySlots reports whether a claim is for one of so many slots that this server's view alone shows which of them are free.
func (c claim) manySlots() bool { return c.Slots > maxNamed }

// first requires that no conflicting request waits. It is for a request that is not in the queue itself.
func (w *preconditions) first(c claim) {
	for _, prefix := range c.waits() {
		w.none(prefix)
	}
}

// unwanted returns the conditions that no conflicting request waits.
func (c claim) unwanted() (conditions []kv.Cond) {
	for _, prefix := range c.waits() {
		conditions = append(conditions, kv.NoneUnder(prefix))
	}
	return conditions
}

// waits returns the prefixes of the keys of requests that conflict with the claim.
func (c claim) waits() (prefixes []string) {
	for _, p := range c.Paths {
		at := node(waitPrefix, p)
		if c.Mode == Shared {
			at += exclusiveMark
		}
		prefixes = append(prefixes, at)
		for _, above := range p.ancestors() {
			prefixes = append(prefixes, node(waitPrefix, above)+exclusiveMark)
		}
	}
	slices.Sort(prefixes)
	return slices.Compact(prefixes)
}

func (w *preconditions) between(first, end string) {
	none := kv.NoneBetween(first, end)
	w.add(first, none, none.Read(maxNamed))
}

func (w *preconditions) none(prefix string) {
	none := kv.NoneUnder(prefix)
	w.add(prefix, none, none.Read(maxNamed))
}

func (w *preconditions) add(name string, condition kv.Cond, read kv.Op) {
	if slices.Contains(w.names, name) {
		return
	}
	if w.names == nil {
		w.names, w.conditions, w.reads = make([]string, 0, usual), make([]kv.Cond, 0, usual), make([]kv.Op, 0, usual)
	}
	w.names = append(w.names, name)
	w.conditions = append(w.conditions, condition)
	w.reads = append(w.reads, read)
}
