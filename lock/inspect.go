package lock

import (
	"context"
	"slices"
	"time"
)

// Channel carries messages between the owners of one project, as BroadcastChannel
// does between the tabs of one origin: to all others, in no promised time, and to
// those that are frozen not at all.
type Channel interface {
	Post(Message) error
	// Listen calls handle for every message of another owner until stop is called.
	// handle must not block.
	Listen(handle func(Message)) (stop func(), err error)
}

// Message is what owners tell each other.
type Message struct {
	Kind    MessageKind
	Round   string // ties an answer to its question
	Holders []Holder
	Waiters []Waiter
}

// MessageKind says what a message is for.
type MessageKind string

// An owner that hears WhoIsThere answers HereIAm with what it holds and waits for.
const (
	WhoIsThere MessageKind = "who-is-there"
	HereIAm    MessageKind = "here-i-am"
)

// Holder is an owner that holds. Only Resource, Mode and Strategy are known of one
// that does not answer; its OwnerID is the Locker's name for it then.
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
}

// Waiter is an owner that waits. Since is zero for one that does not answer.
type Waiter struct {
	Resource  string
	Mode      Mode
	OwnerID   string
	OwnerName string
	Since     time.Time
}

// rollCall is how long the answers of others are waited for when somebody holds or
// waits of whom nothing is known yet.
const rollCall = 400 * time.Millisecond

// Inspect tells who holds and who waits, in the order of time. It asks the Lockers, who
// know all of them, and the owners, who know the rest: names, tokens, times.
func (m *Manager) Inspect(ctx context.Context) ([]Holder, []Waiter, error) {
	var held, pending []Info
	strategies := make(map[string]Strategy)
	for _, b := range m.config.Backends {
		s, err := b.Locker.Query(ctx)
		if err != nil {
			continue // a strategy that cannot be used here has no holders to tell
		}
		strategies[b.Resource] = b.Strategy
		ours := func(i Info) bool { return i.Name != b.Resource }
		held = append(held, slices.DeleteFunc(s.Held, ours)...)
		pending = append(pending, slices.DeleteFunc(s.Pending, ours)...)
	}
	holders, waiters, err := m.ask(ctx, len(held), len(pending))
	if err != nil {
		return nil, nil, err
	}
	for _, i := range unknown(held, holders, func(h Holder) (string, Mode) { return h.Resource, h.Mode }) {
		holders = append(holders, Holder{Resource: i.Name, Mode: i.Mode, Strategy: strategies[i.Name], OwnerID: i.ClientID})
	}
	for _, i := range unknown(pending, waiters, func(w Waiter) (string, Mode) { return w.Resource, w.Mode }) {
		waiters = append(waiters, Waiter{Resource: i.Name, Mode: i.Mode, OwnerID: i.ClientID})
	}
	slices.SortStableFunc(holders, func(a, b Holder) int { return a.Since.Compare(b.Since) })
	slices.SortStableFunc(waiters, func(a, b Waiter) int { return a.Since.Compare(b.Since) })
	return holders, waiters, nil
}

// ask collects what the owners say, this one included, until as many spoke up as are
// known to exist or the time of the roll call is over.
func (m *Manager) ask(ctx context.Context, held, pending int) ([]Holder, []Waiter, error) {
	holders, waiters := m.present()
	enough := func() bool { return len(holders) >= held && len(waiters) >= pending }
	if m.config.Channel == nil || enough() {
		return holders, waiters, nil
	}
	err := m.hear(ctx, func(a Message) bool {
		holders, waiters = append(holders, a.Holders...), append(waiters, a.Waiters...)
		return enough()
	})
	return holders, waiters, err
}

// hear asks all owners who is there and hands their answers to take, one at a time, until
// it has enough or the time of the roll call is over.
func (m *Manager) hear(ctx context.Context, take func(Message) (enough bool)) error {
	ctx, stop := context.WithTimeout(ctx, rollCall)
	defer stop()
	round := NewID()
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

// answer tells another owner what this one holds and waits for.
func (m *Manager) answer(question Message) {
	if question.Kind != WhoIsThere {
		return
	}
	holders, waiters := m.present()
	if len(holders)+len(waiters) > 0 {
		_ = m.config.Channel.Post(Message{Kind: HereIAm, Round: question.Round, Holders: holders, Waiters: waiters})
	}
}

// present lists what this owner holds and waits for.
func (m *Manager) present() (holders []Holder, waiters []Waiter) {
	for _, l := range m.Leases() {
		holders = append(holders, Holder{Resource: l.Resource, Mode: l.Mode, Strategy: l.Strategy,
			OwnerID: l.OwnerID, OwnerName: l.OwnerName, LeaseID: l.ID, Token: l.Token,
			Since: l.AcquiredAt, ExpiresAt: l.ExpiresAt})
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, w := range m.waiting {
		waiters = append(waiters, w)
	}
	return holders, waiters
}

// unknown returns the infos for which nobody spoke up.
func unknown[T any](infos []Info, known []T, key func(T) (string, Mode)) (rest []Info) {
	type entry struct {
		name string
		mode Mode
	}
	spoken := make(map[entry]int)
	for _, k := range known {
		name, mode := key(k)
		spoken[entry{name, mode}]++
	}
	for _, i := range infos {
		if e := (entry{i.Name, i.Mode}); spoken[e] > 0 {
			spoken[e]--
		} else {
			rest = append(rest, i)
		}
	}
	return rest
}

// waits notes that an acquisition waits; the function it returns ends that.
func (m *Manager) waits(a *acquisition, resource string) (done func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waiting[a] = Waiter{Resource: resource, Mode: a.opts.Mode, OwnerID: m.config.OwnerID,
		OwnerName: m.config.OwnerName, Since: m.config.Clock.Now().Wall}
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.waiting, a)
	}
}
