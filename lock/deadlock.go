package lock

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
)

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

const (
	// probeAgain is the delay after which a probe is repeated although nothing happened: a suspended owner may lose
	// messages. It doubles each time, up to probeRarely.
	probeAgain  = 250 * time.Millisecond
	probeRarely = 8 * time.Second
	maxSeen     = 100
)

// Probe asks which acquisitions block a waiting acquisition, and which ones block those.
type Probe struct {
	Initiator string    // the lease id of the acquisition that began the probe
	Since     time.Time // when the initiator began to wait, in whole milliseconds
	Wants     []Want    // the locks that the sender of this message waits for
	Slots     bool      // a sender on the way waits for one of several slots
}

// waiting is an acquisition that waits.
type waiting struct {
	Waiter
	m      *Manager
	locker Locker
	within *heldLease
	stir   chan struct{} // capacity 1: a probe is due
	end    context.CancelCauseFunc

	// Guarded by the manager's mu.
	round     string          // of the probe that is under way
	suspected bool            // the last probe came back
	confirms  bool            // the probe under way is the second one
	doubtful  bool            // the probe came back through a wait for slots
	seen      map[string]bool // rounds of others that were passed on; all of them, since two of one initiator may follow each other
}

// at records the locks that are held and the ones that are waited for next.
func (w *waiting) at(held []Want, awaits ...Want) {
	if w == nil {
		return
	}
	w.m.mu.Lock()
	w.Held, w.Awaits = held, awaits
	w.round, w.suspected, w.doubtful = "", false, false
	w.m.mu.Unlock()
	w.disturb()
}

func (w *waiting) disturb() {
	select {
	case w.stir <- struct{}{}:
	default:
	}
}

// chase sends probes until ctx ends.
func (w *waiting) chase(ctx context.Context) {
	for pause := probeAgain; ctx.Err() == nil; {
		w.m.mu.Lock()
		p := Probe{Initiator: w.LeaseID, Since: w.Since}
		w.round, w.confirms, w.suspected = NewID(), w.suspected, false
		round, doubtful := w.round, w.doubtful && !w.confirms
		w.doubtful = false
		w.m.mu.Unlock()
		switch {
		case !doubtful:
			w.pass(ctx, round, p)
		case w.isVictim(ctx):
			w.deadlocked()
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

// pass sends a probe to all owners that may block this acquisition.
func (w *waiting) pass(ctx context.Context, round string, p Probe) {
	w.m.mu.Lock()
	awaits := w.Awaits
	w.m.mu.Unlock()
	if len(awaits) == 0 {
		return
	}
	p.Wants, p.Slots = awaits, p.Slots || len(awaits) > 1
	if first := awaits[0]; first.Mode == Shared {
		// A shared request behind an exclusive one waits for all holders of the name, as the exclusive one does.
		s, err := w.locker.Query(ctx)
		if exclusive := (Want{first.Name, Exclusive}); err == nil && lists(s.Pending, exclusive) {
			p.Wants = []Want{exclusive}
		}
	}
	m := Message{Kind: WhoIsInTheWay, Round: round, Probe: p}
	w.m.probed(m)
	if w.m.config.Channel != nil {
		_ = w.m.config.Channel.Post(m)
	}
}

// probed passes a probe on for every acquisition of this owner that blocks the sender and waits itself. It ends the
// acquisition that receives its own probe. It does not block.
func (m *Manager) probed(msg Message) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, w := range m.waiting {
		if w.seen[msg.Round] || !slices.ContainsFunc(msg.Probe.Wants, w.blocks) {
			continue
		}
		switch age := w.compare(msg.Probe); {
		case age == 0:
			w.returned(msg.Round, msg.Probe.Slots)
		case age > 0:
			w.disturb()
		default:
			if len(w.seen) > maxSeen {
				w.seen = make(map[string]bool) // a probe may then be passed on twice, which does no harm
			}
			w.seen[msg.Round] = true
			m.work.Go(func() { w.pass(m.life, msg.Round, msg.Probe) })
		}
	}
}

// compare returns whether the acquisition began to wait before the initiator of a probe (negative) or after it
// (positive), or is the initiator (zero).
func (w *waiting) compare(p Probe) int {
	return age(w.Since, w.LeaseID, p.Since, p.Initiator)
}

// age is positive if the first acquisition began to wait after the second one.
//
//go:noinline
func age(since time.Time, id string, other time.Time, otherID string) int {
	return cmp.Or(cmp.Compare(since.UnixMilli(), other.UnixMilli()), strings.Compare(id, otherID))
}

// blocks reports whether the acquisition, or a lease around it, holds a lock that conflicts with want.
func (w *waiting) blocks(want Want) bool {
	for h := w.within; h != nil; h = h.within {
		if conflicts(h.wants, want) {
			return true
		}
	}
	return conflicts(w.Held, want)
}

// conflicts reports whether one of the held locks conflicts with want. Like age it is not inlined, which would make the Wasm
// kilobytes larger.
//
//go:noinline
func conflicts(held []Want, want Want) bool {
	for _, h := range held {
		if h.Name == want.Name && (h.Mode == Exclusive || want.Mode == Exclusive) {
			return true
		}
	}
	return false
}

// returned ends the acquisition when its probe came back for the second time.
func (w *waiting) returned(round string, slots bool) {
	switch {
	case w.round != round:
	case slots:
		w.doubtful = true
		w.disturb()
	case w.confirms:
		w.deadlocked()
	default:
		w.suspected = true
		w.disturb()
	}
}

func (w *waiting) deadlocked() {
	w.end(&Error{Code: CodeDeadlock, Operation: OpAcquire, Resource: w.Resource,
		Detail: "it and others waited for each other, and it began last; release what you hold, or take it all at once with paths"})
}

// waits registers a waiting acquisition and looks for cycles until done is called. It ends the acquisition if it is the
// victim of a cycle.
func (m *Manager) waits(ctx context.Context, a *acquisition, b Backend) (done func()) {
	s := b.target(a.opts.Mode)
	w := &waiting{m: m, locker: s.local, within: a.within, stir: make(chan struct{}, 1), end: a.end, seen: make(map[string]bool),
		Waiter: Waiter{Resource: b.Resource, Mode: a.opts.Mode, OwnerID: m.config.OwnerID, OwnerName: m.config.OwnerName,
			LeaseID: a.opts.LeaseID, Paths: s.places, Slots: s.slots, Within: a.within.id(),
			Since: m.config.Clock.Now().Wall, Awaits: s.wants[:min(1, len(s.wants))]}}
	s.wait = w
	m.mu.Lock()
	m.waiting[a] = w
	m.mu.Unlock()
	ctx, stop := context.WithCancel(ctx)
	m.work.Go(func() { w.chase(ctx) })
	return func() {
		stop()
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.waiting, a)
	}
}

// lists reports whether a Locker reported a want.
func lists(infos []Info, w Want) bool {
	for _, i := range infos {
		if i.Name == w.Name && i.Mode == w.Mode {
			return true
		}
	}
	return false
}

// selfWait returns a lease of this owner, outside the acquisition's chain, that holds a lock the acquisition waits for.
func (m *Manager) selfWait(a *acquisition, b Backend) (found *heldLease) {
	wants := b.target(a.opts.Mode).wants
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, h := range m.leases {
		for _, w := range wants {
			if conflicts(h.wants, w) && !a.within.inChain(h) {
				found = h
			}
		}
	}
	return found
}
