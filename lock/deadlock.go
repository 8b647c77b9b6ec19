package lock

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
)

// Deadlocks are found by edge chasing, after K. M. Chandy, J. Misra and L. M. Haas,
// "Distributed Deadlock Detection", ACM TOCS 1 (1983), in the model in which a process
// waits for all that are in its way. The processes here are acquisitions that wait; each
// holds what it was granted so far and what the leases around it hold. One that
// begins to wait sends a probe to all owners: whoever waits while it holds what the
// probe's sender waits for passes the probe on as its own. A probe that comes back to
// where it began has gone around a cycle.
//
// One acquisition of a cycle ends, the one that began to wait last: probes are passed on
// only by those that began to wait earlier, so that no other gets its own back. A
// younger one that is met on the way begins a probe of its own.
//
// A probe that came back is sent once more before it counts: between the two, somebody
// on the way may have given up. One that went through a wait for one of several slots
// does not count by itself: see knot.go.

const (
	// probeAgain is when a probe is sent again although nothing happened: messages can
	// get lost on an owner that is suspended. It is doubled each time, up to probeRarely.
	probeAgain  = 250 * time.Millisecond
	probeRarely = 8 * time.Second
	maxSeen     = 100
)

// Probe asks who stands in the way of a waiting acquisition, and of those in their way.
type Probe struct {
	Initiator string    // the lease that is waited for where the probe began
	Since     time.Time // when that began to wait, in whole milliseconds
	Wants     []Want    // what the one waits for that passes the probe on
	Slots     bool      // it, or one before it, waits for one of several slots
}

// waiting is an acquisition that waits.
type waiting struct {
	Waiter
	m      *Manager
	locker Locker
	within *holding
	stir   chan struct{} // has one place: a probe is due
	end    context.CancelCauseFunc

	// Under the manager's mu.
	round     string          // of the probe that is on its way
	suspected bool            // the last one came back
	confirms  bool            // this one is the second
	doubtful  bool            // it came back through a wait for slots
	seen      map[string]bool // rounds of others that were passed on; all of them, since two of one initiator may chase each other
}

// at notes what is held and what is waited for next.
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
		case w.knotted(ctx):
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

// pass sends a probe to all who may stand in the way.
func (w *waiting) pass(ctx context.Context, round string, p Probe) {
	w.m.mu.Lock()
	awaits := w.Awaits
	w.m.mu.Unlock()
	if len(awaits) == 0 {
		return
	}
	p.Wants, p.Slots = awaits, p.Slots || len(awaits) > 1
	if first := awaits[0]; first.Mode == Shared {
		// Behind an exclusive request it waits for all who hold the name, as that does.
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

// probed passes a probe on for every acquisition of this owner that stands in the way and
// waits itself, and ends the one whose own probe it is. It does not block.
func (m *Manager) probed(msg Message) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, w := range m.waiting {
		if w.seen[msg.Round] || !slices.ContainsFunc(msg.Probe.Wants, w.bars) {
			continue
		}
		switch age := w.compare(msg.Probe); {
		case age == 0:
			w.returned(msg.Round, msg.Probe.Slots)
		case age > 0:
			w.disturb()
		default:
			if len(w.seen) > maxSeen {
				w.seen = make(map[string]bool) // a probe may be passed on twice then, which harms nobody
			}
			w.seen[msg.Round] = true
			m.work.Go(func() { w.pass(m.life, msg.Round, msg.Probe) })
		}
	}
}

// compare returns whether the acquisition began to wait before a probe's initiator did
// (negative), after it, or is the initiator.
func (w *waiting) compare(p Probe) int {
	return age(w.Since, w.LeaseID, p.Since, p.Initiator)
}

// age is positive where the first acquisition began to wait after the second one.
//
//go:noinline
func age(since time.Time, id string, other time.Time, otherID string) int {
	return cmp.Or(cmp.Compare(since.UnixMilli(), other.UnixMilli()), strings.Compare(id, otherID))
}

// bars reports whether the acquisition, or a lease around it, holds what is in the way
// of want.
func (w *waiting) bars(want Want) bool {
	for h := w.within; h != nil; h = h.within {
		if bar(h.wants, want) {
			return true
		}
	}
	return bar(w.Held, want)
}

// bar reports whether what is held is in the way of want. Not inlined, as age is not: the
// Wasm would be kilobytes larger.
//
//go:noinline
func bar(held []Want, want Want) bool {
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

// waits notes that an acquisition waits, and looks for cycles until the function that it
// returns is called. end ends the acquisition.
func (m *Manager) waits(ctx context.Context, a *acquisition, b Backend) (done func()) {
	s := b.spot(a.opts.Mode)
	w := &waiting{m: m, locker: s.here, within: a.within, stir: make(chan struct{}, 1), end: a.end, seen: make(map[string]bool),
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

// lists reports whether a want is among what a Locker told of.
func lists(infos []Info, w Want) bool {
	for _, i := range infos {
		if i.Name == w.Name && i.Mode == w.Mode {
			return true
		}
	}
	return false
}

// selfWait returns a lease of this owner, outside the acquisition's chain, that holds
// what the acquisition waits for.
func (m *Manager) selfWait(a *acquisition, b Backend) (found *holding) {
	wants := b.spot(a.opts.Mode).wants
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, h := range m.leases {
		for _, w := range wants {
			if bar(h.wants, w) && !a.within.inChain(h) {
				found = h
			}
		}
	}
	return found
}
