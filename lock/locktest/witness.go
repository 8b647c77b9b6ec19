package locktest

import (
	"fmt"
	"sync"
)

// Witness checks the guarantees of a lock, and relies only on its tokens. Contenders report what they do; each of them
// has an id that is used once. Reports may arrive late, but a contender must wait for the answer of Enter before it
// goes on.
type Witness struct {
	mu         sync.Mutex
	began      map[string]bool  // the contenders that asked for the lock; whether they steal
	inside     map[string]*stay // by contender
	ended      map[string]bool
	last       int64 // the highest token that entered,
	robbery    int64 // and the highest token of a steal
	entries    int
	violations []string
}

// stay is one contender between Enter and Leave.
type stay struct {
	token int64
	// robbed: the lock may have been stolen by a contender that ended before it reported this.
	robbed bool
}

// NewWitness returns a witness that has seen nothing.
func NewWitness() *Witness {
	return &Witness{began: make(map[string]bool), inside: make(map[string]*stay), ended: make(map[string]bool)}
}

// Begin is called before the contender asks for the lock.
func (w *Witness) Begin(id string, steal bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended[id] {
		w.began[id] = steal
	}
}

// Enter is called by a contender that was granted the lock, before it does anything else. It reports whether the
// contender may go on. It may not if a contender that stole the lock reported first, just as a store that checks tokens
// would refuse it.
func (w *Witness) Enter(id string, token int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	steal, asked := w.began[id]
	if w.ended[id] {
		return false
	}
	delete(w.began, id)
	w.entries++
	switch {
	case !asked:
		w.violate("%s was granted the lock and had not asked for it", id)
	case token <= w.robbery:
		return false
	case token <= w.last:
		w.violate("%s has token %d, after one with %d", id, token, w.last)
	}
	for other, s := range w.inside {
		if !steal && !s.robbed {
			w.violate("double holder: %s entered (token %d) while %s is inside (token %d)", id, token, other, s.token)
		}
		delete(w.inside, other) // it was stolen from, or is counted once
	}
	w.last = max(w.last, token)
	if steal {
		w.robbery = w.last
	}
	w.inside[id] = &stay{token: token}
	return true
}

// Leave is called before the contender releases the lock.
func (w *Witness) Leave(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.inside, id)
}

// Fail is called if the lock was not granted.
func (w *Witness) Fail(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fail(id)
}

// End is called before a contender is killed: its later reports do not count.
func (w *Witness) End(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fail(id)
	delete(w.inside, id)
	w.ended[id] = true
}

// fail forgets the request of a contender. A contender that steals may have had the lock all the same.
func (w *Witness) fail(id string) {
	if w.began[id] {
		for _, s := range w.inside {
			s.robbed = true
		}
	}
	delete(w.began, id)
}

// Forgotten is called for a contender that waits and is never granted the lock.
func (w *Witness) Forgotten(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.violate("%s was left behind", id)
}

func (w *Witness) violate(format string, args ...any) {
	w.violations = append(w.violations, fmt.Sprintf(format, args...))
}

// Entries counts the reported grants.
func (w *Witness) Entries() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.entries
}

// Violations returns the broken guarantees, in the order in which they were found.
func (w *Witness) Violations() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.violations...)
}
