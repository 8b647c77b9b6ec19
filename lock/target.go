package lock

import "strconv"

// target is what an acquisition wants under one backend. It is computed before anything is asked, and never changes.
// The [arbitration] asks for it, the search for deadlocks and the takeover look at it, and the lease keeps it.
type target struct {
	backend  *Backend // as it was configured for the project
	resource string   // shown in leases, events and errors
	key      string   // the name under which others know it
	mode     Mode
	places   [][]string
	slots    int    // more than 1: one of that many is wanted
	locker   Locker // of this machine, for the wants
	wants    []Want // the names that the enclosing leases do not hold already, in the global order
	// whole is set for the project as a whole, for which the backend's Locker and its Records are enough. The lease of
	// any other target has no record on this machine.
	whole  bool
	remote Place // left for the backend's RemoteLocker, if it has one and the target is not whole
}

// plan returns the target of an acquisition under a backend.
func plan(b *Backend, opts *AcquireOptions, within *heldLease) (*target, *Error) {
	whole := len(opts.Path) == 0 && opts.Paths == nil && opts.Slots < 2
	if within == nil && whole && (b.Remote == nil || opts.Mode == Exclusive) {
		return &target{backend: b, resource: b.Resource, key: b.Name(), mode: opts.Mode, places: [][]string{{}},
			locker: b.Locker, wants: []Want{{b.Name(), opts.Mode}}, whole: true}, nil
	}
	return planPlaces(b, opts, within)
}

// planPlaces returns the target for places of the project, of which the project itself may be one.
func planPlaces(b *Backend, opts *AcquireOptions, within *heldLease) (*target, *Error) {
	places := opts.places()
	t := &target{backend: b, resource: Name(b.Resource, places[0]), key: Name(b.Name(), places[0]), mode: opts.Mode,
		places: places, slots: opts.Slots, locker: b.Locker}
	if more := len(places) - 1; more > 0 {
		t.resource += " +" + strconv.Itoa(more)
	}
	mode := opts.Mode
	if t.slots > 1 {
		mode = Shared // the slot is exclusive instead
	}
	again := "" // a name that they hold although it is needed exclusively
	for _, w := range wants(b.Name(), places, mode) {
		switch held := within.holds(w.Name); {
		case !held:
			t.wants = append(t.wants, w)
		case w.Mode == Exclusive:
			again = w.Name
		}
	}
	if again != "" {
		return nil, &Error{Code: CodeReentrant, Operation: OpAcquire, Resource: t.resource,
			Detail: "the lease given as within, or one around it, holds " + quote(again) + " already; waiting for it would never end"}
	}
	if b.Remote == nil {
		return t, nil
	}
	t.locker = b.Remote.Local()
	t.remote = Place{LeaseID: opts.LeaseID, Mode: opts.Mode, Slots: opts.Slots}
	if within != nil {
		t.remote.Within = within.snapshot().Token
	}
	if failed := within.missing(places, &t.remote); failed != nil {
		failed.Resource = t.resource
		return nil, failed
	}
	return t, nil
}

// line is the name for which the waiters for a slot queue.
func (t *target) line(mode Mode) Want { return Want{t.slot(-1).Name, mode} }

// slot is the name of a slot.
func (t *target) slot(i int) Want {
	return Want{slotName(t.key, len(t.places[0]) == 0, i), Exclusive}
}

// with returns the names to lock, and one more.
func (t *target) with(more Want) []Want { return append(t.wants[:len(t.wants):len(t.wants)], more) }

// nearest returns the Locker of this machine. It is the first to know of a steal.
func (t *target) nearest() Locker {
	if t.whole {
		return t.backend.beneath().Locker
	}
	return t.locker
}
