//go:build js && wasm

package opfs

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/lock"
)

const (
	stepLimit = 5 * time.Second // for a step that no caller bounds
	shortest  = time.Millisecond
	longest   = 16 * time.Millisecond // between two attempts to open a file
)

// longer returns the pause after the next attempt. It reaches the longest after a quarter of a second: another client
// has a file open for a millisecond or two, and only a frozen client keeps it longer.
func longer(pause time.Duration) time.Duration { return min(pause+pause/16, longest) }

// session is the table as one step of this client sees and changes it. The step takes effect if the file still has the
// content on which it was decided.
type session struct {
	steps    *steps
	living   *liveness
	me       string // the id of this client
	now      lock.Instant
	t        *table
	slot     slot
	all      []slot
	restart  bool // the file is written again
	changed  bool
	before   []*entry // this client's entries in the table it saw last
	patches  []patch  // the writes to the file
	size     int      // of the file afterwards, if not 0
	number   int64    // of the version that the writes make
	fresh    bool     // the table is new: the site's data was cleared
	lacks    bool     // the table lacks what this client wrote
	keep     bool     // the file may stay open: no other client is about to use it
	unlisted []string // liveness.unlisted after this step
	ended    int      // how many of steps.ended are removed
	notify   []string // the clients to notify
	warning  string
	look     suspects

	first     *operation // of the step
	operation *operation // whose change is being made
	operated  int        // how many changes were made before
	added     int        // bytes that they have added to the table
	grants    []granting // in order
}

// granting is a grant to a request of this client, by its id and the operation that has made it possible, or nil.
type granting struct {
	id string
	by *operation
}

// compose computes the writes, if the table changed.
func (s *session) compose() {
	s.number = s.slot.number
	s.keep = !s.steps.leaving && !slices.ContainsFunc(s.look.clients, func(blocks string) bool { return blocks != s.me })
	if !s.changed {
		return
	}
	text := s.t.encode()
	s.number++
	s.patches = following(s.slot, s.all, text)
	if s.restart {
		s.number = max(s.slot.number, s.steps.number, s.now.Wall.UnixMilli()) + 2
		s.patches = restarting(s.slot, s.all, s.number, text)
		last := s.patches[1]
		s.size = last.offset + len(last.data) // the bytes behind it are garbage that every step would read
	}
	for _, e := range s.t.next() {
		if e.client != s.me {
			s.notify = append(s.notify, e.id)
		}
	}
	s.keep = s.keep && len(s.notify) == 0
}

// written ends a step whose writes are in the file.
func (s *session) written() {
	s.steps.number, s.steps.doubt, s.living.unlisted, s.steps.seen = s.number, false, s.unlisted, s.now.Mono
	s.steps.moved, s.steps.looked = false, s.now.Wall.UnixMilli()
	s.steps.at("written")
	s.adopt()
	for _, g := range s.grants {
		if by := cmp.Or(g.by, s.first); by != nil { // other clients have made it possible: before any operation
			by.grants = append(by.grants, g.id)
		}
	}
}

// adopt remembers this client's part of the table, and informs its waiters and holders.
func (s *session) adopt() {
	c := s.steps
	c.own, c.clients, c.ended = nil, nil, c.ended[s.ended:]
	for _, e := range s.t.queue {
		if e.state == present {
			c.clients = append(c.clients, e.client)
		}
		if e.client == c.liveness.alive.id {
			c.own = append(c.own, e.clone())
		}
	}
	c.requests.inform(s, c.own)
}

// read decodes the file's content. A table that may be incomplete is in recovery afterwards.
func (s *session) read(image []byte) error {
	c := s.steps
	var err error
	s.slot, s.all, err = newest(image)
	if errors.Is(err, errFuture) {
		return s.refuseNewer(image)
	}
	s.t = &table{}
	if err == nil || errors.Is(err, errTorn) {
		if t, broken := decode(s.slot.text); broken != nil {
			err = broken
		} else {
			s.t = t
		}
	}
	// A client that moved does not know whether its data was cleared: a table without any client that it knows counts as new, if its number
	// shows that it may have begun since the last look. A new table has the number of its first millisecond, and rarely two changes in one.
	s.fresh = c.moved && (s.slot.number < c.number || s.slot.number > c.looked) && !slices.ContainsFunc(c.clients, s.t.knows)
	if err == nil && s.slot.number < c.number && !s.fresh {
		err = errors.New("the file is an old version of itself")
	}
	if err != nil {
		s.startOver(err, len(image) == 0 && (c.number == 0 || s.fresh))
	}
	return nil
}

// startOver begins a recovery.
func (s *session) startOver(why error, unused bool) {
	s.restart, s.changed = true, true
	s.t.token = max(s.t.token, s.now.Wall.UnixMilli())
	s.t.recovery = &recovery{until: s.now.Wall.Add(s.steps.options.TTL).Truncate(time.Millisecond)}
	s.notify = append(s.notify, everyone)
	if !unused {
		s.warning = s.steps.file.path() + " was damaged (" + why.Error() +
			") and is written again; nothing is granted until all open tabs have said what they hold"
	}
}

// refuseNewer refuses a file of a newer version while somebody changes it, and for the TTL after that.
func (s *session) refuseNewer(image []byte) error {
	c := s.steps
	mark := int64(len(image)) << 32
	for _, b := range image {
		mark = mark*31 + int64(b)
	}
	if c.future.what != mark {
		c.future = sighting{mark, s.now.Mono}
	}
	if s.now.Mono-c.future.since < c.options.TTL {
		return &lock.Error{Code: lock.CodeFallbackConflict, Operation: lock.OpAcquire, Err: errors.Join(lock.ErrDenied, errFuture),
			Detail: "another tab runs a newer version of Holdfast; reload this page"}
	}
	s.t = &table{}
	s.startOver(errFuture, false)
	return nil
}

// rejoin puts the waiters of a client that moved into the line again, and those of one whose last step may have been made: it may have
// granted the lock, which was stolen since. A client that moved also restores its records, whose locks it still has. A table that lacks
// them was not replaced: others may hold by right what was taken from the client. In a table since a clear, a record becomes a granted
// entry, for which clients wait that do not see its Web Lock.
func (s *session) rejoin() {
	for _, e := range s.before {
		if s.fresh && e.state == recorded {
			e.state = granted
		}
		if (s.steps.moved || s.steps.doubt && e.state == waiting) && e.state != granted && s.t.find(e.id) == nil {
			s.t.join(e.clone())
			s.changed = true
		}
	}
}

// compare begins a recovery if the table is whole but lacks what the living clients wrote: somebody replaced the file.
func (s *session) compare() {
	c := s.steps
	s.unlisted = slices.DeleteFunc(slices.Clone(c.liveness.unlisted), s.t.knows)
	s.lacks = s.t.lacks(s.before)
	switch {
	case s.t.recovery != nil: // the clients report what they hold
		s.unlisted = nil
	case len(s.unlisted) == 0 && !s.lacks:
	case !s.lacks && (c.liveness.unlistedFound == 0 || s.now.Mono-c.liveness.unlistedFound < entryLimit):
		s.look.unlisted = s.unlisted
	default:
		s.startOver(errReplaced, false)
		s.unlisted = nil
	}
}

var errReplaced = errors.New("it was replaced")

// addPresence puts this client into the table, so that others can recognise a table that lacks it.
func (s *session) addPresence() {
	if me := s.me; s.t.find(me) == nil && !s.steps.leaving {
		s.t.queue = append(s.t.queue, &entry{id: me, client: me, state: present})
		s.changed = true
	}
}

// removeEnded removes the entries and records that this client could not remove before.
func (s *session) removeEnded() {
	s.ended = len(s.steps.ended)
	for _, id := range s.steps.ended {
		s.end(id)
	}
}

// end removes an entry or the record of a lease that this client has ended, and returns the entry as it was. It has no effect the second time.
func (s *session) end(id string) (was *entry) {
	delete(s.steps.stalled, id)
	if e := s.t.find(id); e != nil && e.client == s.me && e.state != recorded { // the record of a lock that was released has the lock's id
		was = e.clone()
		s.t.release(e)
		s.changed = true
	}
	if e := s.t.leased(id); e != nil && e.client == s.me {
		was = e.clone()
		s.t.unlease(e)
		if e.lease == nil && s.steps.requests.grants[e.id] == nil { // a lock since the site's data was cleared
			s.t.remove(e)
		}
		s.changed = true
	}
	return was
}

// make makes the changes of operations, up to the first that is refused, and returns how many it has made.
func (s *session) make(operations []*operation) int {
	defer func() { s.operation = nil }()
	for i, o := range operations {
		s.first, s.operation, s.operated = operations[0], o, i
		err := o.change(s)
		if errors.Is(err, errLater) {
			return i
		}
		if o.err = err; err != nil {
			return i + 1
		}
	}
	return len(operations)
}

// removeDead removes the entries of clients that are known to be gone.
func (s *session) removeDead() {
	for _, e := range slices.Clone(s.t.queue) {
		if s.living.dead[e.client] {
			s.t.remove(e)
			s.changed = true
		}
	}
}
