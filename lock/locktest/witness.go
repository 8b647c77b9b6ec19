package locktest

import (
	"fmt"
	"sync"
)

// Witness checks the guarantees of a lock, and relies only on its tokens. Contenders report what they do; each of them
// has an id that is used once. Reports may arrive late, but a contender must wait for the answer of Enter before it
// goes on.
type Witness struct {
	mu           sync.Mutex
	asked        map[string]*turn // the contenders between Begin and Enter
	inside       map[string]*turn // and those between Enter and Leave
	ended        map[string]bool
	last         int64 // the highest token that entered,
	highestSteal int64 // and the highest token of a steal
	entries      int
	violations   []string
}

// turn is what one contender does from Begin to Leave.
type turn struct {
	steal bool
	token int64
	// maybeStolen: a contender that failed or ended, and so never entered, may have stolen the lock.
	maybeStolen bool
}

// NewWitness returns a witness that has seen nothing.
func NewWitness() *Witness {
	return &Witness{asked: make(map[string]*turn), inside: make(map[string]*turn), ended: make(map[string]bool)}
}

// Begin is called before the contender asks for the lock.
func (w *Witness) Begin(id string, steal bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended[id] {
		w.asked[id] = &turn{steal: steal}
	}
}

// Enter is called by a contender that was granted the lock, before it does anything else. It reports whether the
// contender may go on. It may not if another contender has stolen the lock and was there first, just as a store that
// checks tokens would refuse it.
func (w *Witness) Enter(id string, token int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended[id] {
		return false
	}
	entering, asked := w.asked[id]
	if !asked {
		w.violate("%s was granted the lock and had not asked for it", id)
		entering = &turn{}
	}
	delete(w.asked, id)
	w.entries++
	underWay := w.stealing()
	switch {
	case token <= w.highestSteal:
		return false
	case token > w.last:
	case entering.maybeStolen || underWay:
		return false
	default:
		w.violate("%s has token %d, after one with %d", id, token, w.last)
	}
	for other, in := range w.inside {
		if !entering.steal && !in.maybeStolen && !underWay {
			w.violate("double holder: %s entered (token %d) while %s is inside (token %d)", id, token, other, in.token)
		}
		delete(w.inside, other) // it was stolen from, or is counted once
	}
	w.last = max(w.last, token)
	if entering.steal {
		w.highestSteal = w.last
	}
	entering.token = token
	w.inside[id] = entering
	return true
}

// stealing reports whether a contender has asked to steal the lock and has not reported yet how that went.
func (w *Witness) stealing() bool {
	for _, other := range w.asked {
		if other.steal {
			return true
		}
	}
	return false
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

// fail forgets the request of a contender. A contender that steals may have had the lock nevertheless, and may have
// taken it from one that was granted it and has not reported that yet.
func (w *Witness) fail(id string) {
	if failed, asked := w.asked[id]; asked && failed.steal {
		for _, turns := range []map[string]*turn{w.asked, w.inside} {
			for _, other := range turns {
				other.maybeStolen = true
			}
		}
	}
	delete(w.asked, id)
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
