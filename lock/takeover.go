package lock

import (
	"context"
	"time"
)

const (
	// expiryGrace is how long after its expiry a record is still believed.
	expiryGrace = 100 * time.Millisecond
	// lookAgain is how often a waiter looks for a record where there is none to time it by.
	lookAgain = 5 * time.Second
)

// watch looks at the holder's record while an exclusive acquisition waits. The channel
// has the record of a holder that has not renewed it in time and does not answer either:
// one that is frozen. Expiry alone says nothing, since the Locker knows who is gone.
func (a *acquisition) watch(ctx context.Context, b Backend) <-chan Record {
	frozen := make(chan Record)
	if a.opts.Mode != Exclusive || b.Strategy != WebLock || a.m.config.Channel == nil || b.spot(a.opts.Mode).m != nil {
		return frozen
	}
	a.m.work.Go(func() {
		for pause := time.Duration(0); sleep(ctx, pause); {
			pause = lookAgain
			record, ok := a.read(ctx, b)
			if !ok {
				continue
			}
			if left := record.left(a.m.config.Clock.Now()); left > 0 {
				pause = left
				continue
			}
			if a.m.answers(ctx, record) {
				continue
			}
			select {
			case frozen <- record:
			case <-ctx.Done():
			}
		}
	})
	return frozen
}

// takeOver steals the lock from the holder of the record. Of several waiters that found
// it frozen one does, and only while the record is still there: the others would rob the
// first. ok reports whether the request was answered; otherwise the waiting goes on.
func (a *acquisition) takeOver(ctx context.Context, b Backend, frozen Record) (grant Grant, err error, ok bool) {
	guard := a.m.request(ctx, b.Locker, Request{Wants: []Want{{b.Resource + " takeover", Exclusive}}})
	defer guard.abandon()
	turn, err := guard.wait(ctx)
	if err != nil {
		return nil, err, ctx.Err() != nil
	}
	record, there := a.read(ctx, b)
	if !there || record.LeaseID != frozen.LeaseID || record.left(a.m.config.Clock.Now()) > 0 {
		a.m.giveBack(turn)
		return nil, nil, false
	}
	a.turn, a.opts.Steal = turn, true
	thief := a.m.request(ctx, b.Locker, Request{Wants: []Want{{b.Resource, a.opts.Mode}}, Steal: true})
	defer thief.abandon()
	grant, err = thief.wait(ctx)
	return grant, err, true
}

// endTakeOver lets the next waiter look, now that the record is that of this acquisition.
func (a *acquisition) endTakeOver() {
	if a.turn != nil {
		a.m.giveBack(a.turn)
	}
}

func (a *acquisition) read(ctx context.Context, b Backend) (Record, bool) {
	type found struct {
		record Record
		ok     bool
	}
	f, err := bounded(ctx, answerLimit, func(ctx context.Context) (f found, err error) {
		f.record, f.ok, err = b.Records.Read(ctx, b.Resource)
		return f, err
	})
	return f.record, err == nil && f.ok
}

// left is how long the record is to be believed.
func (r Record) left(now Instant) time.Duration {
	return r.ExpiresAt.Add(expiryGrace).Sub(now.Wall)
}

// answers asks whether the owner of a record lives and holds what the record says, or
// anybody else who lives holds some of it: places of the project, where the record was
// left behind by one that is gone.
func (m *Manager) answers(ctx context.Context, r Record) bool {
	holders, waiters := m.present()
	if speaks(r, holders, waiters) {
		return true
	}
	answered := false
	err := m.hear(ctx, func(a Message) (enough bool) {
		answered = answered || speaks(r, a.Holders, a.Waiters)
		return answered
	})
	return answered || err != nil
}

func speaks(r Record, holders []Holder, waiters []Waiter) bool {
	for _, h := range holders {
		if h.LeaseID == r.LeaseID || named(h.Wants, r.Resource) {
			return true
		}
	}
	for _, w := range waiters {
		if named(w.Held, r.Resource) {
			return true
		}
	}
	return false
}

// sleep waits and reports whether the time passed before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
