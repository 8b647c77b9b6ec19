//go:build js && wasm

package opfs

import (
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/lock"
)

const (
	// patience is how long the first waiter in line may take, once its names are free, before the next one passes it: it is probably
	// frozen. Each further waiter waits for half as long again.
	patience = 2 * time.Second
	// clockError is the maximum difference between an expiry and the value that this client would write.
	clockError = time.Second
	// grace is how long after its expiry a lease is taken over.
	grace = 100 * time.Millisecond
)

// request puts e into the queue, unless it is there already, and grants it if nothing blocks it. The time of asking is known only for requests that
// wait. A steal is the first operation of its step, so that each holder from whom it takes a lock knows that it had the lock.
func (s *session) request(e *entry, r lock.Request) error {
	e.client = s.me
	if there := s.t.find(e.id); there != nil {
		s.grant(func(other *entry) bool { return other == there })
		return nil
	}
	if full := s.hasRoom(e); full != nil {
		return full
	}
	mine := e.clone()
	switch {
	case r.Steal && s.operated > 0:
		return errLater
	case r.Steal && r.From != nil && s.t.heldByOther(mine, r.From):
		return lock.ErrDenied
	case r.Steal:
		s.notifyLost(s.t.steal(mine))
		s.granted(mine)
	case r.IfAvailable:
		s.t.queue = append(s.t.queue, mine)
	default:
		s.t.join(mine)
		s.changed = true
	}
	s.grant(func(other *entry) bool { return other == mine })
	if r.IfAvailable && mine.state == waiting {
		refused := s.denied(mine)
		s.t.remove(mine)
		delete(s.steps.stalled, mine.id)
		return refused
	}
	return nil
}

// hasRoom returns an error if the table would become too long with one more entry.
func (s *session) hasRoom(e *entry) error {
	size := len((&table{queue: []*entry{e}}).encode())
	switch {
	case len(s.slot.text)+s.added+size <= maxText:
		s.added += size
		return nil
	case s.operated > 0: // those before it may have made room
		return errLater
	}
	return unsupported(s.steps.file.path()+": there is no space for such long names or so many locks", nil)
}

func (s *session) notifyLost(lost []*entry) {
	for _, e := range lost {
		s.notify = append(s.notify, e.id)
	}
}

// grant grants the requests of this client that nothing blocks, among those for which the answer may have changed. Those behind an own waiter
// wait for that one at least.
func (s *session) grant(changed func(*entry) bool) {
	var first []*entry
	for _, e := range slices.Clone(s.t.queue) {
		if e.client != s.me || e.state != waiting {
			continue
		}
		if changed(e) && !slices.ContainsFunc(first, func(other *entry) bool { return conflict(other, e) }) {
			s.try(e)
		}
		if e.state == waiting {
			first = append(first, e)
		}
	}
}

func everything(*entry) bool { return true }

// free grants the requests that waited for an entry which is gone.
func (s *session) free(gone *entry) {
	if gone != nil {
		s.grant(func(e *entry) bool { return conflict(gone, e) })
	}
}

func (s *session) granted(e *entry) {
	e.state = granted
	s.changed = true
	s.grants = append(s.grants, granting{e.id, s.operation})
}

func (s *session) try(e *entry) {
	if s.t.recovery != nil || len(s.look.unlisted) > 0 {
		return
	}
	blockers := s.t.blockers(e)
	if old := expired(blockers, s.over); len(old) > 0 {
		s.t.remove(old...)
		s.notifyLost(old)
		s.changed = true
		s.warning = "the lease of " + owner(old[0]) + " on " + strconv.Quote(old[0].lease.Resource) + " had expired and was taken over"
		blockers = s.t.blockers(e)
	}
	holders := slices.DeleteFunc(slices.Clone(blockers), func(b *entry) bool { return b.state == waiting })
	if len(holders) > 0 {
		blockers = holders
	} else {
		holders = s.holding(blockers)
		blockers = append(blockers, holders...)
	}
	if len(holders) > 0 {
		delete(s.steps.stalled, e.id)
	}
	if len(blockers) == 0 || len(holders) == 0 && s.stalled(e, len(blockers)) {
		s.granted(e)
		return
	}
	for _, b := range blockers {
		s.look.clients = append(s.look.clients, b.client)
	}
}

// holding returns the holders that block waiters. Such a waiter need not be frozen, so it keeps its place. A holder whose lease has
// expired does not count, because a waiter that runs takes its lock over.
func (s *session) holding(waiters []*entry) (holders []*entry) {
	for _, b := range s.t.queue {
		blocks := func(w *entry) bool { return conflict(b, w) }
		if b.state == granted && (b.lease == nil || !s.over(b.lease)) && slices.ContainsFunc(waiters, blocks) {
			holders = append(holders, b)
		}
	}
	return holders
}

// stalled reports whether e has been blocked for too long by as many waiters, which nobody blocks. It forgets nothing when e is granted,
// because the file may have other content than the one on which that is decided.
func (s *session) stalled(e *entry, ahead int) bool {
	seen := s.steps.stalled[e.id]
	if what := int64(ahead); seen.what != what {
		seen = sighting{what, s.now.Mono}
		s.steps.stalled[e.id] = seen
	}
	return s.now.Mono-seen.since > patience*time.Duration(1+ahead)/2 // the next one in line is the first to pass
}

// over reports whether a lease has expired. An expiry farther away than its TTL was written before the clock was set
// back; it counts from the time at which it was first seen.
func (s *session) over(l *lease) bool {
	left := l.ExpiresAt.Sub(s.now.Wall)
	if left <= l.ttl+clockError {
		delete(s.steps.unlikely, l.LeaseID)
		return left < -grace
	}
	seen := s.steps.unlikely[l.LeaseID]
	if what := l.ExpiresAt.UnixMilli(); seen.what != what {
		seen = sighting{what, s.now.Mono}
		s.steps.unlikely[l.LeaseID] = seen
	}
	return s.now.Mono-seen.since > l.ttl+grace
}

// denied returns the error that names the blocking holder.
func (s *session) denied(e *entry) error {
	if len(s.look.unlisted) > 0 {
		return lock.ErrDenied // preliminary: the caller may find out more
	}
	conflict := &lock.Error{Code: lock.CodeFallbackConflict, Operation: lock.OpAcquire, Err: lock.ErrDenied,
		Detail: "the file is being recovered; it is free when all open tabs have said what they hold"}
	if s.t.recovery != nil {
		return conflict
	}
	blockers := s.t.blockers(e)
	if blockers[0].client == e.client {
		return lock.ErrDenied
	}
	conflict.Detail = "it is held by " + owner(blockers[0])
	return conflict
}

func owner(e *entry) string {
	switch {
	case e.lease == nil:
		return "client " + e.client
	case e.lease.OwnerName == "":
		return "owner " + e.lease.OwnerID
	}
	return e.lease.OwnerName
}

// recover ends a recovery when all living clients were seen, or its time is over.
func (s *session) recover() {
	r := s.t.recovery
	if r == nil {
		return
	}
	if me := s.me; !slices.Contains(r.seen, me) {
		r.seen = append(r.seen, me)
		s.changed = true
		s.notify = append(s.notify, everyone) // this client may have been the last one missing
	}
	if r.until.Sub(s.now.Wall) > s.steps.options.TTL+clockError { // the clock was set back
		r.until = s.now.Wall.Add(s.steps.options.TTL).Truncate(time.Millisecond)
		s.changed = true
	}
	called := s.living.present.until.Equal(r.until)
	missing := slices.ContainsFunc(s.living.present.living, func(client string) bool { return !slices.Contains(r.seen, client) })
	switch {
	case called && !missing:
	case !s.now.Wall.Before(r.until):
		s.warning = s.steps.file.path() + " is in use again, although a tab that is open did not say what it holds"
		if called {
			s.introduce(s.living.present.living)
		}
	default:
		s.look.recovery, s.look.called = r.until, called
		return
	}
	s.t.recovery = nil
	s.changed = true
}

// introduce puts clients into the table that said nothing during a recovery. Otherwise each client that begins later
// would take the table for another one and begin a recovery again.
func (s *session) introduce(silent []string) {
	for _, client := range silent {
		if !s.t.knows(client) {
			s.t.queue = append(s.t.queue, &entry{id: client, client: client, state: present})
		}
	}
}
