package lock

import "context"

// All holders of a place with slots hold the place shared, and each of them holds one slot exclusively. The place
// therefore excludes clients that want it as a whole, and is excluded by them. Waiters queue for one more name, the
// line. Only the first of them asks for slots, for all of them at once, and keeps the first one that is granted. No
// newcomer passes a waiter, and a slot that a dead holder leaves goes to the first in line.

func (s *target) slot(i int) Want {
	return Want{slotName(Name(s.b.Name(), s.places[0]), len(s.places[0]) == 0, i), Exclusive}
}

func (s *target) line(mode Mode) Want { return Want{s.slot(-1).Name, mode} }

// trySlots takes the first slot that is free, unless a client waits in line.
func (s *target) trySlots(ctx context.Context) (Grant, error) {
	type answer struct {
		line Grant
		err  error
	}
	line := make(chan answer, 1)
	go func() { // at the same time: if nobody blocks it, this costs nothing
		g, err := s.ask(ctx, true, s.line(Shared))
		line <- answer{g, err}
	}()
	grant, err := s.firstFree(ctx)
	a := <-line
	if a.err == nil {
		_ = a.line.Release(context.WithoutCancel(ctx))
	}
	if err == nil && a.err != nil {
		_ = grant.Release(context.WithoutCancel(ctx))
		return nil, a.err
	}
	return grant, err
}

func (s *target) firstFree(ctx context.Context) (Grant, error) {
	g, err := s.ask(ctx, true, append(s.wants[:len(s.wants):len(s.wants)], s.slot(0))...)
	if err == nil {
		return newBundle(0, g), nil
	}
	if !denied(err) {
		return nil, err
	}
	place, err := s.try(ctx)
	if err != nil {
		return nil, err
	}
	for i := 1; i < s.slots && (i == 1 || denied(err)); i++ {
		if g, err = s.ask(ctx, true, s.slot(i)); err == nil {
			return newBundle(i, place, g), nil
		}
	}
	_ = place.Release(context.WithoutCancel(ctx))
	return nil, err
}

// awaitSlot waits in line and, once it is the first, waits for the slot that is free next.
func (s *target) awaitSlot(ctx context.Context) (Grant, error) {
	wants := append(s.wants[:len(s.wants):len(s.wants)], s.line(Exclusive))
	parts, err := s.takeInTurn(ctx, wants)
	if err != nil {
		return nil, err
	}
	i, g, err := s.race(ctx, wants)
	last := len(parts) - 1
	_ = parts[last].Release(context.WithoutCancel(ctx))
	if err != nil {
		_ = freeAll(context.WithoutCancel(ctx), parts[:last])
		return nil, err
	}
	return newBundle(i, append(parts[:last], g)...), nil
}

// run runs f concurrently, as work of the manager if there is one.
func (s *target) run(f func()) {
	if s.m == nil {
		go f()
	} else {
		s.m.work.Go(f)
	}
}

// race asks for all slots, keeps the first one that is granted and gives up the others.
func (s *target) race(ctx context.Context, held []Want) (slot int, g Grant, err error) {
	type answer struct {
		slot  int
		grant Grant
		err   error
	}
	slots := make([]Want, s.slots)
	for i := range slots {
		slots[i] = s.slot(i)
	}
	s.wait.at(held, slots...)
	asking, stop := context.WithCancel(ctx)
	answers := make(chan answer)
	for i, slot := range slots {
		s.run(func() {
			g, err := s.ask(asking, false, slot)
			answers <- answer{i, g, err}
		})
	}
	a := <-answers
	stop()
	s.run(func() {
		for range s.slots - 1 {
			if late := <-answers; late.err == nil {
				_ = late.grant.Release(context.WithoutCancel(ctx))
			}
		}
	})
	return a.slot, a.grant, a.err
}
