package lock

import "context"

// All holders of a place with slots hold the place shared, and each of them holds one slot exclusively. The place
// therefore excludes clients that want it as a whole, and is excluded by them. Waiters queue for one more name, the
// line. Only the first of them asks for slots, for all of them at once, and keeps the first one that is granted. No
// later request overtakes a waiter, and a slot that a dead holder leaves goes to the first in line.

// trySlots takes the first slot that is free, unless a client waits in line.
func (r *arbitration) trySlots(ctx context.Context) (*granted, error) {
	type answer struct {
		line Grant
		err  error
	}
	line := make(chan answer, 1)
	go func() { // at the same time: if nobody blocks it, this costs nothing
		g, err := r.ask(ctx, true, r.line(Shared))
		line <- answer{g, err}
	}()
	grant, err := r.firstFree(ctx)
	a := <-line
	if a.err == nil {
		_ = a.line.Release(context.WithoutCancel(ctx))
	}
	if err == nil && a.err != nil {
		_ = grant.grant.Release(context.WithoutCancel(ctx))
		return nil, a.err
	}
	return grant, err
}

func (r *arbitration) firstFree(ctx context.Context) (*granted, error) {
	g, err := r.ask(ctx, true, r.with(r.slot(0))...)
	if err == nil {
		return r.grantsSlot(0, g), nil
	}
	if !denied(err) {
		return nil, err
	}
	place, err := r.ask(ctx, true, r.wants...)
	if err != nil {
		return nil, err
	}
	for i := 1; i < r.slots && (i == 1 || denied(err)); i++ {
		if g, err = r.ask(ctx, true, r.slot(i)); err == nil {
			return r.grantsSlot(i, place, g), nil
		}
	}
	_ = place.Release(context.WithoutCancel(ctx))
	return nil, err
}

// awaitSlot waits in line and, once it is the first, waits for the slot that is free next.
func (r *arbitration) awaitSlot(ctx context.Context) (*granted, error) {
	wants := r.with(r.line(Exclusive))
	parts, err := r.takeInTurn(ctx, wants)
	if err != nil {
		return nil, err
	}
	i, g, err := r.race(ctx, wants)
	last := len(parts) - 1
	_ = parts[last].Release(context.WithoutCancel(ctx))
	if err != nil {
		_ = freeAll(context.WithoutCancel(ctx), parts[:last])
		return nil, err
	}
	return r.grantsSlot(i, append(parts[:last], g)...), nil
}

// race asks for all slots, keeps the first one that is granted and gives up the others.
func (r *arbitration) race(ctx context.Context, held []Want) (slot int, g Grant, err error) {
	type answer struct {
		slot  int
		grant Grant
		err   error
	}
	slots := make([]Want, r.slots)
	for i := range slots {
		slots[i] = r.slot(i)
	}
	r.progress(held, slots...)
	asking, stop := context.WithCancel(ctx)
	answers := make(chan answer)
	for i, slot := range slots {
		r.run(func() {
			g, err := r.ask(asking, false, slot)
			answers <- answer{i, g, err}
		})
	}
	a := <-answers
	stop()
	r.run(func() {
		for range r.slots - 1 {
			if late := <-answers; late.err == nil {
				_ = late.grant.Release(context.WithoutCancel(ctx))
			}
		}
	})
	return a.slot, a.grant, a.err
}
