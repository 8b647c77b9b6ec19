package lock

import "context"

// arbitration is one request for a [target]: the Lockers decide whether it is granted.
type arbitration struct {
	*target
	ifAvailable bool
	steal       bool
	// onLocal, if set, is called when this machine has granted the project, and another machine is asked.
	onLocal func()
	// onProgress, if set, is called with the names that are held and those that are awaited next.
	onProgress func(held, awaits []Want)
	// run runs a function concurrently.
	run func(func())
}

// granted is a target that the Lockers have granted.
type granted struct {
	grant   Grant
	wants   []Want  // the names that are locked on this machine, without those that the enclosing leases hold
	slot    int     // the index of the slot
	records Records // of the lease; nil: there is no record
}

// RequestPlaces requests the locks below a lease, without the lease. opts names the places of the project by Path,
// Paths, Mode and Slots. IfAvailable and Steal apply too. Inspect does not show its holders and waiters, and deadlocks
// are not found. It returns the errors of [Locker].Request, and ErrInvalidArgument.
func RequestPlaces(ctx context.Context, b Backend, opts AcquireOptions) (Grant, error) {
	opts.setDefaults()
	if err := opts.check([]Backend{b}); err != nil {
		return nil, err
	}
	t, failed := planPlaces(&b, &opts, nil)
	if failed != nil {
		return nil, failed
	}
	r := arbitration{target: t, ifAvailable: opts.IfAvailable, steal: opts.Steal, run: func(f func()) { go f() }}
	g, err := r.request(ctx)
	if err != nil {
		return nil, err
	}
	return g.grant, nil
}

// request asks for the target. The errors are those of [Locker].Request.
func (r *arbitration) request(ctx context.Context) (*granted, error) {
	if r.whole {
		g, err := r.locker.Request(ctx, Request{Wants: r.wants, IfAvailable: r.ifAvailable, Steal: r.steal, OnLocal: r.onLocal})
		return r.grants(g, err, r.backend.Records)
	}
	g, err := r.requestLocally(ctx)
	if err != nil || r.backend.Remote == nil {
		return g, err
	}
	return r.requestRemotely(ctx, g)
}

// requestLocally asks for the names on this machine.
func (r *arbitration) requestLocally(ctx context.Context) (*granted, error) {
	switch {
	case r.steal:
		return r.stealAll(ctx)
	case r.ifAvailable && r.slots > 1:
		return r.trySlots(ctx)
	case r.ifAvailable:
		g, err := r.ask(ctx, true, r.wants...)
		return r.grants(g, err, nil)
	case r.slots > 1:
		return r.awaitSlot(ctx)
	}
	// One name after the other, in the global order. An acquisition that takes all it needs at once can therefore never
	// be part of a cycle, and at any time it is known what it holds and what it waits for.
	parts, err := r.takeInTurn(ctx, r.wants)
	if err != nil {
		return nil, err
	}
	return r.grants(newBundle(parts...), nil, nil)
}

// requestRemotely completes a grant of this machine.
func (r *arbitration) requestRemotely(ctx context.Context, local *granted) (*granted, error) {
	p := r.remote
	p.Steal = r.steal
	far, err := r.backend.Remote.Lock(ctx, &p, local.grant, r.ifAvailable)
	if err != nil {
		_ = local.grant.Release(context.WithoutCancel(ctx))
		return nil, err
	}
	slot := local.slot
	if len(p.Paths) > 0 {
		slot = far.Slot()
	}
	return &granted{grant: newBundle(local.grant, far), wants: local.wants, slot: slot, records: far}, nil
}

// grants returns the grant of all wants.
func (r *arbitration) grants(g Grant, err error, records Records) (*granted, error) {
	if err != nil {
		return nil, err
	}
	return &granted{grant: g, wants: r.wants, records: records}, nil
}

// grantsSlot returns the grant of all wants and of a slot.
func (r *arbitration) grantsSlot(slot int, parts ...Grant) *granted {
	return &granted{grant: newBundle(parts...), wants: r.with(r.slot(slot)), slot: slot}
}

// progress records what is held and what is awaited next.
func (r *arbitration) progress(held []Want, awaits ...Want) {
	if r.onProgress != nil {
		r.onProgress(held, awaits)
	}
}

// ask asks for names at once. An empty bundle is granted if the enclosing leases hold everything.
func (r *arbitration) ask(ctx context.Context, ifAvailable bool, wants ...Want) (Grant, error) {
	if len(wants) == 0 {
		return newBundle(), nil
	}
	return r.locker.Request(ctx, Request{Wants: wants, IfAvailable: ifAvailable})
}

// takeInTurn waits for the names one by one. If it fails, it gives back the names it has taken.
func (r *arbitration) takeInTurn(ctx context.Context, wants []Want) (parts []Grant, err error) {
	for i, w := range wants {
		r.progress(wants[:i], w)
		g, err := r.ask(ctx, false, w)
		if err != nil {
			_ = freeAll(context.WithoutCancel(ctx), parts)
			return nil, err
		}
		parts = append(parts, g)
	}
	r.progress(wants)
	return parts, nil
}

// stealAll takes the places from their holders. It takes an ancestor that a client holds exclusively in that mode, since
// Lockers cannot share a stolen name.
func (r *arbitration) stealAll(ctx context.Context) (*granted, error) {
	taken, parts := make([]Want, 0, len(r.wants)), make([]Grant, 0, len(r.wants))
	for _, w := range r.wants {
		r.progress(taken, w)
		g, mode, err := r.stealOne(ctx, w)
		if err != nil {
			_ = freeAll(context.WithoutCancel(ctx), parts)
			return nil, err
		}
		taken, parts = append(taken, Want{w.Name, mode}), append(parts, g)
	}
	r.progress(taken)
	return &granted{grant: newBundle(parts...), wants: taken}, nil
}

// stealOne takes a name, and returns the mode in which it took it.
func (r *arbitration) stealOne(ctx context.Context, w Want) (Grant, Mode, error) {
	if w.Mode == Shared {
		g, err := r.ask(ctx, true, w)
		if err == nil || !denied(err) {
			return g, Shared, err
		}
		now, err := r.locker.Query(ctx)
		if err != nil || !lists(now.Held, Want{w.Name, Exclusive}) {
			g, err = r.ask(ctx, false, w)
			return g, Shared, err
		}
	}
	g, err := r.locker.Request(ctx, Request{Wants: []Want{{w.Name, Exclusive}}, Steal: true})
	return g, Exclusive, err
}
