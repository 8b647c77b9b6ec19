// Package waitgraph finds acquisitions that wait for each other, and picks the one that gives up.
//
// Deadlocks are found by edge chasing, after K. M. Chandy, J. Misra and L. M. Haas, "Distributed Deadlock Detection",
// ACM TOCS 1 (1983), in the model in which a process waits for all processes that block it. The processes here are
// waiting acquisitions. Each holds the locks it was granted so far and the locks of the leases around it. An
// acquisition that begins to wait sends a probe to all owners. An acquisition that waits and also holds a lock that the
// probe's sender waits for passes the probe on as its own. A probe that returns to its initiator has gone around a
// cycle.
//
// One acquisition of a cycle gives up: the one that began to wait last. Only acquisitions that began to wait before the
// initiator pass its probe on, so no other initiator receives its own probe. A younger one that the probe reaches
// begins a probe of its own.
//
// A probe that returned is sent once more before it counts, because an acquisition on the way may have given up in
// between. A probe that passed a wait for one of several slots proves nothing by itself: see deadlockset.go.
package waitgraph

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// probeAgain is the delay after which a probe is repeated although nothing happened: a suspended owner may lose
	// messages. It doubles each time, up to probeRarely.
	probeAgain  = 250 * time.Millisecond
	probeRarely = 8 * time.Second
	maxSeen     = 100
)

// Probe asks which acquisitions block a waiting acquisition, and which ones block those.
type Probe[L comparable] struct {
	Initiator string    // the id of the acquisition that began the probe
	Since     time.Time // when the initiator began to wait
	Wants     []L       // the locks that the sender waits for
	Slots     bool      // a sender on the way waits for one of several slots
}

// Search looks for deadlocks among the waiting acquisitions of one owner and those of all others. L is a name that is
// held or awaited, and whether it is exclusive.
type Search[L comparable] struct {
	Conflict  func(held, want L) bool            // reports whether two clients cannot have both
	Exclusive func(L) L                          // returns the exclusive lock of the same name
	Post      func(round string, p Probe[L])     // sends a probe to all other owners
	Waiters   func(context.Context) []*Waiter[L] // collects the waiting acquisitions of all owners
	NewRound  func() string                      // returns a unique text
	Go        func(func())                       // runs a function concurrently
	Life      context.Context                    // ends with the owner

	mu    sync.Mutex
	waits map[*Wait[L]]struct{}
}

// Wait is an acquisition that waits.
type Wait[L comparable] struct {
	ID     string
	Since  time.Time
	Around []L // held by the leases around it
	// Queued reports whether a request for the lock waits in a queue.
	Queued func(context.Context, L) bool
	End    func() // ends the acquisition because of a deadlock; it must not call the Search

	search *Search[L]
	stir   chan struct{} // capacity 1: a probe is due

	// Guarded by the search's mu.
	held      []L
	awaits    []L
	round     string          // of the probe that is under way
	suspected bool            // the last probe came back
	confirms  bool            // the probe under way is the second one
	doubtful  bool            // the probe came back through a wait for slots
	seen      map[string]bool // rounds of others that were passed on; all of them, since two of one initiator may follow each other
}

// Begin registers an acquisition that holds nothing yet, and searches for deadlocks until done is called.
func (s *Search[L]) Begin(ctx context.Context, w *Wait[L], awaits []L) (done func()) {
	w.search, w.awaits, w.stir, w.seen = s, awaits, make(chan struct{}, 1), make(map[string]bool)
	s.mu.Lock()
	if s.waits == nil {
		s.waits = make(map[*Wait[L]]struct{})
	}
	s.waits[w] = struct{}{}
	s.mu.Unlock()
	ctx, stop := context.WithCancel(ctx)
	s.Go(func() { w.chase(ctx) })
	return func() {
		stop()
		s.mu.Lock()
		delete(s.waits, w)
		s.mu.Unlock()
	}
}

// At records the locks that are held and the ones that are waited for next.
func (w *Wait[L]) At(held, awaits []L) {
	w.search.mu.Lock()
	w.held, w.awaits = held, awaits
	w.round, w.suspected, w.doubtful = "", false, false
	w.search.mu.Unlock()
	w.disturb()
}

// Locks returns the locks that are held and the ones that are waited for next.
func (w *Wait[L]) Locks() (held, awaits []L) {
	w.search.mu.Lock()
	defer w.search.mu.Unlock()
	return w.held, w.awaits
}

func (w *Wait[L]) disturb() {
	select {
	case w.stir <- struct{}{}:
	default:
	}
}

// chase sends probes until ctx ends.
func (w *Wait[L]) chase(ctx context.Context) {
	for pause := probeAgain; ctx.Err() == nil; {
		switch round, doubtful := w.next(); {
		case !doubtful:
			w.pass(ctx, round, Probe[L]{Initiator: w.ID, Since: w.Since})
		case w.isVictim(ctx):
			w.End()
		}
		timer := time.NewTimer(pause)
		select {
		case <-w.stir:
		case <-timer.C:
			pause = min(2*pause, probeRarely)
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// next returns the round of a new probe, and whether the last one came back through a wait for slots.
func (w *Wait[L]) next() (round string, doubtful bool) {
	w.search.mu.Lock()
	defer w.search.mu.Unlock()
	w.round, w.confirms, w.suspected = w.search.NewRound(), w.suspected, false
	doubtful = w.doubtful && !w.confirms
	w.doubtful = false
	return w.round, doubtful
}

// pass sends a probe to all owners that may block this acquisition.
func (w *Wait[L]) pass(ctx context.Context, round string, p Probe[L]) {
	_, awaits := w.Locks()
	if len(awaits) == 0 {
		return
	}
	p.Wants, p.Slots = awaits, p.Slots || len(awaits) > 1
	if exclusive := w.search.Exclusive(awaits[0]); awaits[0] != exclusive && w.Queued(ctx, exclusive) {
		// A shared request behind an exclusive one waits for all holders of the name, as the exclusive one does.
		p.Wants = []L{exclusive}
	}
	w.search.Receive(round, p)
	w.search.Post(round, p)
}

// Receive passes a probe on for every acquisition of this owner that blocks the sender and waits itself. It ends the
// acquisition that receives its own probe. It does not block.
func (s *Search[L]) Receive(round string, p Probe[L]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.waits {
		if w.seen[round] || !slices.ContainsFunc(p.Wants, w.blocks) {
			continue
		}
		switch age := age(w.Since, w.ID, p.Since, p.Initiator); {
		case age == 0:
			w.returned(round, p.Slots)
		case age > 0:
			w.disturb()
		default:
			if len(w.seen) > maxSeen {
				w.seen = make(map[string]bool) // a probe may then be passed on twice, which does no harm
			}
			w.seen[round] = true
			s.Go(func() { w.pass(s.Life, round, p) })
		}
	}
}

// age is positive if the first acquisition began to wait after the second one, and zero if they are the same.
func age(since time.Time, id string, other time.Time, otherID string) int {
	return cmp.Or(cmp.Compare(since.UnixMilli(), other.UnixMilli()), strings.Compare(id, otherID))
}

// blocks reports whether the acquisition, or a lease around it, holds a lock that conflicts with want.
func (w *Wait[L]) blocks(want L) bool {
	return w.search.conflicts(w.Around, want) || w.search.conflicts(w.held, want)
}

// conflicts reports whether one of the held locks conflicts with want.
func (s *Search[L]) conflicts(held []L, want L) bool {
	for _, h := range held {
		if s.Conflict(h, want) {
			return true
		}
	}
	return false
}

// returned ends the acquisition when its probe came back for the second time.
func (w *Wait[L]) returned(round string, slots bool) {
	switch {
	case w.round != round:
	case slots:
		w.doubtful = true
		w.disturb()
	case w.confirms:
		w.End()
	default:
		w.suspected = true
		w.disturb()
	}
}
