package lock

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/lock/internal/waitgraph"
)

// Channel carries messages between the owners of one project, as BroadcastChannel does between the tabs of one origin.
// A message reaches all other owners at some later time, except those that are frozen.
type Channel interface {
	Post(Message) error
	// Listen calls handle for every message of another owner until stop is called.
	// handle must not block.
	Listen(handle func(Message)) (stop func(), err error)
}

// Message is a message between owners.
type Message struct {
	Kind    MessageKind
	Round   string // connects an answer with its question
	Holders []Holder
	Waiters []Waiter
	Probe   Probe
}

// MessageKind is the purpose of a message.
type MessageKind string

// An owner that receives WhoIsThere answers HereIAm with its holders and waiters. WhoIsInTheWay is a [Probe].
const (
	WhoIsThere    MessageKind = "who-is-there"
	HereIAm       MessageKind = "here-i-am"
	WhoIsInTheWay MessageKind = "who-is-in-the-way"
)

// Holder is an owner that holds a lease. For an owner that does not answer, only Resource, Mode and Strategy are known.
// OwnerID is then the Locker's name for it.
type Holder struct {
	Resource  string
	Mode      Mode
	Strategy  Strategy
	OwnerID   string
	OwnerName string
	LeaseID   string
	Token     int64
	Since     time.Time
	ExpiresAt time.Time
	TTL       time.Duration // of each renewal; 0 if it is not known
	Paths     [][]string
	Slots     int
	Slot      int
	Within    string // the id of the enclosing lease
	Wants     []Want // the names that it holds, without those of the enclosing leases
	Excludes  string // as Lease.Excludes; set by Inspect
}

// Waiter is an owner that waits. Since is zero for an owner that does not answer.
type Waiter struct {
	Resource   string
	Mode       Mode
	OwnerID    string
	OwnerName  string
	LeaseID    string // of the lease that it will get
	Since      time.Time
	Paths      [][]string
	Slots      int
	Within     string
	Held       []Want   // the names that it was granted so far
	Awaits     []Want   // the name that it waits for next, or slots, of which it needs one
	WaitsFor   []string // the ids of the owners that hold these; set by Inspect
	HoldsLocal bool     // it holds the resource on this machine, and waits for another machine
}

// holdsLocal records whether the acquisition holds the lock of this machine and waits for another one.
func (m *Manager) holdsLocal(a *acquisition, holds bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if w := m.waiting[a]; w != nil {
		w.HoldsLocal = holds
	}
}

// presenceLimit is how long Inspect waits for answers while a holder or waiter exists that no owner has reported.
const presenceLimit = 400 * time.Millisecond

// Inspect returns the holders and the waiters, the oldest first. It asks the Lockers, which know all of them, and the
// owners, which know names, tokens and times.
func (m *Manager) Inspect(ctx context.Context) ([]Holder, []Waiter, error) {
	r, err := m.look(ctx)
	if err != nil {
		return nil, nil, err
	}
	if r.grantUnderWay() {
		if again, err := m.look(ctx); err == nil && ctx.Err() == nil { // without time, a look finds no owner
			r = again
		}
	}
	for _, i := range r.held {
		r.holders = append(r.holders, Holder{Resource: r.shown(i.Name), Mode: i.Mode, Strategy: r.backends[i.Name].Strategy, OwnerID: i.ClientID, Wants: []Want{{i.Name, i.Mode}}})
	}
	for _, i := range r.pending {
		r.waiters = append(r.waiters, Waiter{Resource: r.shown(i.Name), Mode: i.Mode, OwnerID: i.ClientID, Awaits: []Want{{i.Name, i.Mode}}})
	}
	for i := range r.holders {
		h := &r.holders[i]
		h.Excludes = m.excludes(h.Wants, h.Paths)
	}
	byAge(r.holders, func(h *Holder) time.Time { return h.Since })
	byAge(r.waiters, func(w *Waiter) time.Time { return w.Since })
	r.linkWaiters()
	return r.holders, r.waiters, nil
}

// look asks the Lockers and the owners once.
func (m *Manager) look(ctx context.Context) (*presence, error) {
	r := &presence{backends: make(map[string]Backend)}
	for _, b := range m.config.Backends {
		s, err := b.Locker.Query(ctx)
		if err != nil {
			continue // a strategy that cannot be used here has no holders
		}
		foreign := func(i Info) bool {
			if key := b.Name(); i.Name != key && !above(key, key, i.Name) {
				return true
			}
			r.backends[i.Name] = b
			return false
		}
		r.held = append(r.held, slices.DeleteFunc(s.Held, foreign)...)
		r.pending = append(r.pending, slices.DeleteFunc(s.Pending, foreign)...)
	}
	r.add(m.present())
	return r, m.ask(ctx, r)
}

// presence is the collected knowledge about holders and waiters.
type presence struct {
	held, pending []Info             // not yet reported by an owner
	granted       []Want             // awaited according to an owner, and in no queue
	backends      map[string]Backend // by the names that their Lockers reported
	holders       []Holder
	waiters       []Waiter
}

// shown returns the resource for a name that a Locker reported.
func (r *presence) shown(name string) string {
	b := r.backends[name]
	return b.Resource + strings.TrimPrefix(name, b.Name())
}

// byAge sorts the oldest first. There are few items, and the library's sort is large.
func byAge[T any](items []T, since func(*T) time.Time) {
	for i := range items {
		for j := i; j > 0 && since(&items[j]).Before(since(&items[j-1])); j-- {
			items[j], items[j-1] = items[j-1], items[j]
		}
	}
}

// add takes an owner's report about itself.
func (r *presence) add(holders []Holder, waiters []Waiter) {
	r.holders, r.waiters = append(r.holders, holders...), append(r.waiters, waiters...)
	for _, h := range holders {
		r.holds(h.Wants)
	}
	for _, w := range waiters {
		r.holds(w.Held)
		for _, awaited := range w.Awaits {
			before := len(r.pending)
			if r.pending = without(r.pending, []Want{awaited}); len(r.pending) == before {
				r.granted = append(r.granted, awaited)
			}
		}
	}
}

// holds removes names that an owner holds. A Locker that also asks other machines may report them as awaited.
func (r *presence) holds(wants []Want) {
	for _, w := range wants {
		before := len(r.held)
		if r.held = without(r.held, []Want{w}); len(r.held) == before {
			r.pending = without(r.pending, []Want{w})
		}
	}
}

// grantUnderWay reports whether an owner may have been granted a name without knowing it yet. Such an owner appears as a holder
// without a name and as a waiter.
func (r *presence) grantUnderWay() bool {
	return slices.ContainsFunc(r.held, func(i Info) bool { return slices.Contains(r.granted, Want{i.Name, i.Mode}) })
}

func (r *presence) complete() bool { return len(r.held)+len(r.pending) == 0 }

// linkWaiters records which owners hold the names that the waiters wait for.
func (r *presence) linkWaiters() {
	for i := range r.waiters {
		w := &r.waiters[i]
		for j := range r.holders {
			w.link(r.holders[j].OwnerID, r.holders[j].Wants)
		}
		for j := range r.waiters {
			if i != j {
				w.link(r.waiters[j].OwnerID, r.waiters[j].Held)
			}
		}
	}
}

func (w *Waiter) link(owner string, held []Want) {
	for _, a := range w.Awaits {
		if named(held, a.Name) && !slices.Contains(w.WaitsFor, owner) {
			w.WaitsFor = append(w.WaitsFor, owner)
		}
	}
}

// without returns the infos without one for each of the wants.
func without(infos []Info, wants []Want) []Info {
	for _, w := range wants {
		for i, info := range infos {
			if info.Name == w.Name && info.Mode == w.Mode {
				infos = append(infos[:i], infos[i+1:]...)
				break
			}
		}
	}
	return infos
}

// ask collects reports until as many owners have answered as are known to exist, or presenceLimit is over.
func (m *Manager) ask(ctx context.Context, r *presence) error {
	if m.config.Channel == nil || r.complete() {
		return nil
	}
	return m.collectAnswers(ctx, NewID(), presenceLimit, func(a Message) bool {
		r.add(a.Holders, a.Waiters)
		return r.complete()
	})
}

// collectAnswers asks all owners for their holders and waiters, and passes their answers to take one at a time, until take has
// enough or the limit is over. Late answers to an earlier question of the same round count too.
func (m *Manager) collectAnswers(ctx context.Context, round string, limit time.Duration, take func(Message) (enough bool)) error {
	ctx, stop := context.WithTimeout(ctx, limit)
	defer stop()
	answers := make(chan Message)
	stopListening, err := m.config.Channel.Listen(func(a Message) {
		if a.Kind == HereIAm && a.Round == round {
			go func() {
				select {
				case answers <- a:
				case <-ctx.Done():
				}
			}()
		}
	})
	if err != nil {
		return err
	}
	defer stopListening()
	if err := m.config.Channel.Post(Message{Kind: WhoIsThere, Round: round}); err != nil {
		return err
	}
	for {
		select {
		case a := <-answers:
			if take(a) {
				return nil
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// receive handles a message of another owner.
func (m *Manager) receive(said Message) {
	switch said.Kind {
	case WhoIsThere:
		holders, waiters := m.present()
		if len(holders)+len(waiters) > 0 {
			_ = m.config.Channel.Post(Message{Kind: HereIAm, Round: said.Round, Holders: holders, Waiters: waiters})
		}
	case WhoIsInTheWay:
		m.deadlocks.Receive(said.Round, waitgraph.Probe[Want](said.Probe))
	}
}

// present lists the holders and waiters of this owner.
func (m *Manager) present() (holders []Holder, waiters []Waiter) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, h := range m.leases {
		l := h.snapshot()
		holders = append(holders, Holder{Resource: l.Resource, Mode: l.Mode, Strategy: l.Strategy,
			OwnerID: l.OwnerID, OwnerName: l.OwnerName, LeaseID: l.ID, Token: l.Token,
			Since: l.AcquiredAt, ExpiresAt: l.ExpiresAt, TTL: l.TTL, Paths: l.Paths, Slots: l.Slots, Slot: l.Slot, Within: l.Within, Wants: h.wants})
	}
	for _, w := range m.waiting {
		now := w.Waiter
		now.Held, now.Awaits = w.graph.Locks()
		waiters = append(waiters, now)
	}
	return holders, waiters
}
