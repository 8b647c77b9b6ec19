package lock

import (
	"context"
	"strconv"
)

// target is the Locker of the places that one acquisition locks under one backend. A request to it is for all of them,
// whatever its Wants are.
type target struct {
	m      *Manager
	b      Backend
	local  Locker // of this machine, for names below b's resource
	places [][]string
	wants  []Want // the names that the enclosing leases do not hold already
	again  string // a name that they hold although it is needed exclusively
	slots  int
	remote Place // if b also locks between machines
	within *heldLease
	wait   *waiting // nil while it does not wait
}

// at returns the backend of an acquisition: b itself for the project as a whole, or a backend whose Locker is a [target].
func (a *acquisition) at(b Backend) (Backend, *Error) {
	whole := len(a.opts.Path) == 0 && a.opts.Paths == nil && a.opts.Slots < 2
	if a.within == nil && whole && (b.Remote == nil || a.opts.Mode == Exclusive) {
		return b, nil
	}
	s := newSpot(b, a.opts, a.within)
	s.m = a.m
	b.Resource, b.Key = Name(b.Resource, s.places[0]), Name(b.Name(), s.places[0])
	if more := len(s.places) - 1; more > 0 {
		b.Resource += " +" + strconv.Itoa(more)
	}
	if s.again != "" {
		return b, &Error{Code: CodeReentrant, Operation: OpAcquire, Resource: b.Resource,
			Detail: "the lease given as within, or one around it, holds " + quote(s.again) + " already; waiting for it would never end"}
	}
	if b.Remote != nil {
		if err := a.within.missing(&s.remote); err != nil {
			err.Resource = b.Resource
			return b, err
		}
	}
	b.Locker, b.Records, b.Local = s, a.m.tokens, nil
	return b, nil
}

func newSpot(b Backend, opts AcquireOptions, within *heldLease) *target {
	s := &target{b: b, local: b.Locker, places: opts.places(), slots: opts.Slots, within: within}
	if b.Remote != nil {
		s.local = b.Remote.Local()
		s.remote = Place{LeaseID: opts.LeaseID, Paths: s.places, Mode: opts.Mode, Slots: opts.Slots}
	}
	mode := opts.Mode
	if s.slots > 1 {
		mode = Shared // the slot is exclusive instead
	}
	for _, w := range wants(b.Name(), s.places, mode) {
		held := within.holds(w.Name)
		if held && w.Mode == Exclusive {
			s.again = w.Name
		}
		if !held {
			s.wants = append(s.wants, w)
		}
	}
	return s
}

// target returns what is locked under a backend; that of the project as a whole is used for reports only.
func (b Backend) target(mode Mode) *target {
	if s, ok := b.Locker.(*target); ok {
		return s
	}
	return &target{b: b, local: b.Locker, places: [][]string{{}}, wants: []Want{{b.Name(), mode}}}
}

// Places returns the Locker of places of the project that b locks, as opts names them by Path, Paths, Mode and Slots:
// the locks below a lease, without the lease. Each request to it is for all of them, whatever its Wants say. Inspect
// does not show its holders and waiters, and deadlocks are not found. The error matches ErrInvalidArgument.
func Places(b Backend, opts AcquireOptions) (Locker, error) {
	opts = opts.withDefaults()
	if err := opts.check([]Backend{b}); err != nil {
		return nil, err
	}
	return newSpot(b, opts, nil), nil
}

// taken returns the slot and the names that a grant holds.
func (s *target) taken(g Grant) (slot int, wants []Want) {
	switch g, ok := g.(*bundle); {
	case !ok:
	case g.remote != nil:
		slot, wants = s.taken(g.local)
		if len(s.remote.Paths) > 0 {
			slot = g.remote.Slot()
		}
		return slot, wants
	case s.slots > 1:
		return g.slot, append(s.wants[:len(s.wants):len(s.wants)], s.slot(g.slot))
	}
	return 0, s.wants
}

// Query implements [Locker], for this machine.
func (s *target) Query(ctx context.Context) (Snapshot, error) { return s.local.Query(ctx) }

// Request implements [Locker].
func (s *target) Request(ctx context.Context, r Request) (Grant, error) {
	var ask func(context.Context) (Grant, error)
	switch {
	case r.Steal:
		ask = s.steal
	case r.IfAvailable && s.slots > 1:
		ask = s.trySlots
	case r.IfAvailable:
		ask = s.try
	case s.slots > 1:
		ask = s.awaitSlot
	default:
		ask = s.await
	}
	grant, err := ask(ctx)
	if err != nil || s.b.Remote == nil {
		return grant, err
	}
	return s.lockRemotely(ctx, grant, r)
}

func (s *target) ask(ctx context.Context, ifAvailable bool, wants ...Want) (Grant, error) {
	if len(wants) == 0 {
		return newBundle(0), nil
	}
	return s.local.Request(ctx, Request{Wants: wants, IfAvailable: ifAvailable})
}

// try takes everything or nothing, without waiting.
func (s *target) try(ctx context.Context) (Grant, error) { return s.ask(ctx, true, s.wants...) }

// await takes one name after the other, in the global order. An acquisition that takes all it needs at once can
// therefore never be part of a cycle, and at any time it is known what it holds and what it waits for.
func (s *target) await(ctx context.Context) (Grant, error) {
	parts, err := s.takeInTurn(ctx, s.wants)
	if err != nil {
		return nil, err
	}
	return newBundle(0, parts...), nil
}

// takeInTurn waits for the names one by one. If it fails, it gives back the names it has taken.
func (s *target) takeInTurn(ctx context.Context, wants []Want) (parts []Grant, err error) {
	for i, w := range wants {
		s.wait.at(wants[:i], w)
		g, err := s.ask(ctx, false, w)
		if err != nil {
			_ = freeAll(context.WithoutCancel(ctx), parts)
			return nil, err
		}
		parts = append(parts, g)
	}
	s.wait.at(wants)
	return parts, nil
}

// steal takes the places from their holders. It takes an ancestor that a client holds exclusively in that mode, since
// Lockers cannot share a stolen name.
func (s *target) steal(ctx context.Context) (Grant, error) {
	var parts []Grant
	for i := range s.wants {
		g, err := s.stealOne(ctx, &s.wants[i])
		if err != nil {
			_ = freeAll(context.WithoutCancel(ctx), parts)
			return nil, err
		}
		parts = append(parts, g)
	}
	return newBundle(0, parts...), nil
}

func (s *target) stealOne(ctx context.Context, w *Want) (Grant, error) {
	if w.Mode == Shared {
		g, err := s.ask(ctx, true, *w)
		if err == nil || !denied(err) {
			return g, err
		}
		now, err := s.Query(ctx)
		if err != nil || !lists(now.Held, Want{w.Name, Exclusive}) {
			return s.ask(ctx, false, *w)
		}
		w.Mode = Exclusive
	}
	return s.local.Request(ctx, Request{Wants: []Want{*w}, Steal: true})
}
