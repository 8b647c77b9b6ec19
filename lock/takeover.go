package lock

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/internal/wait"
)

const (
	// expiryGrace is the time after its expiry for which a record still counts as valid.
	expiryGrace = 100 * time.Millisecond
	// lookAgain is how often a waiter looks for a record while there is none.
	lookAgain = 5 * time.Second
	// lookLimit is the longest time between two looks. The holder may change meanwhile, and its successor may have a
	// much shorter TTL.
	lookLimit = 15 * time.Second
	// readLimit is how long a waiter tries to read a record; unreadableLimit is that time if it could not be read before.
	readLimit, unreadableLimit = 2 * time.Second, 300 * time.Millisecond
	// busyLimit is how long a living client may be busy without an answer.
	busyLimit = 5 * time.Second
	// guardLimit is how long a waiter lets another waiter take over before it regards that waiter as frozen itself. It
	// waits up to half as long again, each waiter for a different time.
	guardLimit = 10 * time.Second
)

// suspect is a holder that may be frozen.
type suspect struct {
	holders    presentHolders
	record     Record        // the last record of them that could be read, if any
	seen       time.Duration // when it was first read, on the monotonic clock
	renewed    bool          // that record was renewed since the first look, so it is theirs
	recorded   bool          // there is a record of them
	unreadable bool          // no record can be read any more
	silent     time.Duration // how long questions were open that nobody has answered, up to
	asked      time.Duration // this moment on the monotonic clock
	answered   bool          // it answered although the record had expired
	ttl        time.Duration // of the lease that it named in an answer; 0: not known
}

// read stores the record that a waiter has just read.
func (s *suspect) read(r Record, now Instant) {
	if !r.same(s.record) {
		s.seen, s.silent, s.answered, s.ttl, s.renewed = now.Mono, 0, false, 0, r.LeaseID == s.record.LeaseID
	}
	s.record = r
}

// left is how long the record stays valid: until it expires, but at most for its TTL after it was first seen. A record
// that expires later was written before the wall clock was set back.
func (s *suspect) left(now Instant) time.Duration {
	return min(s.record.ExpiresAt.Add(expiryGrace).Sub(now.Wall), s.seen+s.record.validity()+expiryGrace-now.Mono)
}

// patience is how long nobody may answer before the holder counts as frozen. A holder without a record has named its TTL in an answer, if it ever
// answered. A record that cannot be read may have been renewed just before. A holder that answers although its record has expired could not
// write the record, as on a full disk, and may renew its lease after each answer. The record of a shared lease may be that of one holder
// alone; the others renew theirs, or have none. A record that this waiter has not seen renewed may belong to an earlier client.
func (s *suspect) patience() time.Duration {
	switch limit := s.record.validity() + expiryGrace; {
	case s.holders.shared, s.answered && s.recorded:
		return max(DefaultTTL+expiryGrace, limit, s.ttl+lookAgain+expiryGrace)
	case s.unreadable, !s.recorded:
		return max(limit, s.ttl+expiryGrace)
	case !s.renewed:
		return busyLimit
	}
	return 0
}

// same reports whether both are one renewal of one lease.
func (r Record) same(other Record) bool {
	return r.LeaseID == other.LeaseID && r.ExpiresAt.Equal(other.ExpiresAt)
}

// validity is how long a renewal of the lease is valid.
func (r Record) validity() time.Duration {
	switch {
	case r.TTL > 0:
		return r.TTL
	case r.ExpiresAt.After(r.AcquiredAt) && !r.AcquiredAt.IsZero():
		return max(DefaultTTL, r.ExpiresAt.Sub(r.AcquiredAt))
	}
	return DefaultTTL
}

// watch looks at the holder's record while an exclusive acquisition waits. It sends a frozen holder to its channel. A
// holder is frozen if it does not answer, and its record has expired or could not be read for that long. A record
// cannot be read while a process is suspended during a step over the file, which it keeps open. An expired or missing
// record alone proves nothing, because the Locker knows which clients are gone.
func (a *acquisition) watch(ctx context.Context, t *target) <-chan suspect {
	frozen := make(chan suspect)
	if !t.whole || t.mode != Exclusive || !t.backend.keepsFrozen() || t.backend.beneath().Records == nil || a.m.config.Channel == nil {
		return frozen
	}
	a.m.work.Go(func() {
		var s suspect
		for pause := time.Duration(0); wait.For(ctx, pause) == nil; {
			var found bool
			if found, pause = a.look(ctx, t, &s); !found {
				continue
			}
			select {
			case frozen <- s:
			case <-ctx.Done():
			}
		}
	})
	return frozen
}

// keepsFrozen reports whether a frozen holder keeps the lock of this machine forever. While a holder waits for a server it has no lease, so
// every Locker lets it.
func (b *Backend) keepsFrozen() bool {
	return b.Local != nil || b.KeepsFrozen || b.Strategy == WebLock
}

// look reports whether the holder is frozen, or else when to look again.
func (a *acquisition) look(ctx context.Context, t *target, s *suspect) (frozen bool, again time.Duration) {
	record, there, err := a.read(ctx, t, s.unreadable)
	now := a.m.config.Clock.Now()
	holders := a.holders(ctx, t)
	if !holders.among(s.holders) {
		*s = suspect{}
	}
	s.holders = holders
	record, there = holders.own(record, there)
	s.recorded = there
	switch {
	case err == nil:
		s.read(record, now)
		s.unreadable = false
	case errors.Is(err, ErrUnsupported), errors.Is(err, ErrFallbackConflict):
		s.unreadable = false // no records here, or those of a newer version
	default:
		s.unreadable = true
	}
	again = lookAgain
	switch left := s.left(now); {
	case len(holders.clients) == 0, !there && !s.unreadable && t.backend.Local == nil:
	case there && !s.unreadable && left > 0 && !s.answered:
		again = min(left, lookLimit)
	default:
		return a.ask(ctx, s)
	}
	s.silent = 0 // nobody is asked
	return false, again
}

// ask asks a holder whose record has expired, cannot be read or does not exist. Without a record, the holder waits for a server or has a place of the
// project. The question stays open until the next look, because a living holder may be busy. A question that took longer counts for nothing: this page
// was frozen, and may have missed the answer.
func (a *acquisition) ask(ctx context.Context, s *suspect) (frozen bool, again time.Duration) {
	begun := a.m.config.Clock.Now().Mono
	if begun-s.asked > lookLimit { // this page was frozen meanwhile
		s.silent = 0
	}
	limit := max(presenceLimit, min(lookAgain, s.patience()-s.silent))
	if ttl, ok := a.answers(ctx, limit, len(s.holders.clients)); ok {
		s.unreadable, s.silent, s.answered, s.ttl = false, 0, true, max(s.ttl, ttl)
		return false, lookAgain
	}
	now := a.m.config.Clock.Now().Mono
	if now-begun > limit+lastLook {
		return false, 0
	}
	s.asked, s.silent = now, s.silent+limit
	return s.silent >= s.patience(), 0
}

// takeOver steals the lock from a frozen holder. Of several waiters that found it frozen, only one steals: the others
// would steal from the first. It steals only while the holder still has the lock. ok reports whether the request was
// answered; otherwise the waiting goes on.
func (a *acquisition) takeOver(ctx context.Context, t *target, queued *pendingRequest, frozen suspect) (grant *granted, err error, ok bool) {
	guardLock, answered := a.guard(ctx, t, queued)
	switch {
	case answered != nil:
		return answered.grant, answered.err, true
	case guardLock == nil:
		return nil, nil, false
	case !a.foundFrozen(ctx, t, frozen) || wait.Closed(guardLock.Lost()):
		a.m.giveBack(guardLock)
		return nil, nil, false
	}
	a.guardLock, a.steal = guardLock, true
	stolen := a.m.request(ctx, a.arbitration(t).request)
	defer stolen.abandon()
	if grant, err = stolen.wait(ctx); err == nil && frozen.unreadable {
		a.emit(t, Event{Type: EventWarning, Warning: WarnFallbackDegraded,
			Detail: "the record of the lock could not be read for longer than its TTL, and nobody answered: it was taken over"})
	}
	return grant, err, true
}

// guard waits for the lock that a waiter needs to take over. It returns no grant if it cannot get that lock. The holder
// of the guard lock may be frozen too; then it is stolen. Its former holder notices this when it wakes, before it takes
// anything. The waiter keeps its place in the queue meanwhile.
func (a *acquisition) guard(ctx context.Context, t *target, queued *pendingRequest) (guardLock Grant, answered *answer) {
	limit := time.NewTimer(guardLimit + rand.N(guardLimit/2))
	defer limit.Stop()
	expired := limit.C
	for steal := false; ; steal = true {
		l := t.backend.beneath()
		asked := a.m.request(ctx, func(ctx context.Context) (*granted, error) {
			g, err := l.Locker.Request(ctx, Request{Wants: []Want{{l.Name() + " takeover", Exclusive}}, Steal: steal})
			return &granted{grant: g}, err
		})
		defer asked.abandon()
		select {
		case got := <-asked.answers:
			if got.err != nil {
				return nil, nil
			}
			return got.grant.grant, nil
		case got := <-queued.answers:
			return nil, &got
		case <-expired:
			expired = nil
		case <-ctx.Done():
			return nil, nil
		}
	}
}

// lastLooks is how often a waiter repeats a last look that took longer than lastLook, before it steals.
const lastLooks, lastLook = 5, time.Second

// foundFrozen looks once more at a holder that was found frozen. A look that took long proves nothing: this page may
// have been frozen itself since, and the lock may belong to a living successor.
func (a *acquisition) foundFrozen(ctx context.Context, t *target, s suspect) bool {
	for range lastLooks {
		begun := a.m.config.Clock.Now()
		if !a.stillFrozen(ctx, t, s) {
			return false
		}
		if a.m.config.Clock.Now().Since(begun) < lastLook {
			return true
		}
	}
	return false
}

// stillFrozen looks once more at a holder that was found frozen.
func (a *acquisition) stillFrozen(ctx context.Context, t *target, s suspect) bool {
	record, there, err := a.read(ctx, t, s.unreadable)
	record, there = s.holders.own(record, there)
	switch {
	case !s.recorded && !s.unreadable && (there || err != nil && !errors.Is(err, ErrUnsupported)),
		(s.recorded || s.unreadable) && err == nil && (!there || s.unreadable || !record.same(s.record) || s.left(a.m.config.Clock.Now()) > 0):
		return false
	}
	if _, lives := a.answers(ctx, presenceLimit, 1); lives {
		return false
	}
	return a.holders(ctx, t).among(s.holders)
}

// presentHolders are the clients that have the lock, as the Locker shows them.
type presentHolders struct {
	clients []string
	shared  bool // they do not exclude each other
}

// own returns the record, unless it is that of an earlier client: it excludes others, and these holders do not. They have places of the
// project, which have no record.
func (p presentHolders) own(r Record, there bool) (Record, bool) {
	if p.shared && r.Mode == Exclusive {
		return Record{}, false
	}
	return r, there
}

// among reports whether there are holders, all of them are among the others, and they hold the lock in the same mode.
func (p presentHolders) among(others presentHolders) bool {
	return len(p.clients) > 0 && p.shared == others.shared && !slices.ContainsFunc(p.clients, func(one string) bool { return !slices.Contains(others.clients, one) })
}

// holders returns the clients that have the lock; none if that cannot be known.
func (a *acquisition) holders(ctx context.Context, t *target) (p presentHolders) {
	l := t.backend.beneath()
	snapshot, err := bounded(ctx, answerLimit, l.Locker.Query)
	if err != nil {
		return p
	}
	for _, held := range snapshot.Held {
		if held.Name == l.Name() {
			p.clients, p.shared = append(p.clients, held.ClientID), held.Mode == Shared && (p.shared || p.clients == nil)
		}
	}
	return p
}

// endTakeOver lets the next waiter look, now that the record belongs to this acquisition.
func (a *acquisition) endTakeOver() {
	if a.endSteal != nil {
		a.endSteal()
		a.endSteal = nil
	}
	if a.guardLock != nil {
		a.m.giveBack(a.guardLock)
		a.guardLock = nil
	}
}

func (a *acquisition) read(ctx context.Context, t *target, unreadable bool) (Record, bool, error) {
	limit := readLimit
	if unreadable {
		limit = unreadableLimit
	}
	type found struct {
		record Record
		ok     bool
	}
	l := t.backend.beneath()
	f, err := bounded(ctx, limit, func(ctx context.Context) (f found, err error) {
		f.record, f.ok, err = l.Records.Read(ctx, l.Name())
		return f, err
	})
	return f.record, f.ok, err
}

// answers reports whether a living owner holds the project or a part of it. Every lease of the project holds the project's name on this
// machine, at least shared, under whatever name the owner reports it: that of this machine or of a server. If no owner can be asked, the owner may live.
// The question stays open until so many owners have answered, or for the limit. A busy owner may answer later: its answer counts for the next question.
// answers returns the longest TTL of the leases that were reported.
func (a *acquisition) answers(ctx context.Context, limit time.Duration, owners int) (ttl time.Duration, ok bool) {
	if ttl, ok = holding(a.m.present()); ok {
		return ttl, ok
	}
	err := a.m.collectAnswers(ctx, a.opts.LeaseID, limit, func(said Message) (enough bool) {
		if longest, lives := holding(said.Holders, said.Waiters); lives {
			ttl, ok, owners = max(ttl, longest), true, owners-1
		}
		return ok && owners <= 0
	})
	return ttl, ok || err != nil
}

// holding reports whether an owner with these holders and waiters holds a name, and the longest TTL of its leases.
func holding(holders []Holder, waiters []Waiter) (ttl time.Duration, ok bool) {
	for _, h := range holders {
		ttl, ok = max(ttl, h.TTL), true
	}
	for _, w := range waiters {
		ok = ok || w.HoldsLocal || len(w.Held) > 0
	}
	return ttl, ok
}
