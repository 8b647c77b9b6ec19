package locks

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"time"
)

// Mode is how a target is taken.
type Mode string

// The modes of a lock.
const (
	Exclusive Mode = "exclusive"
	Shared    Mode = "shared"
)

// Holder is the owner of a lock, as others may see it.
type Holder struct {
	// ID identifies the owner.
	ID string
	// Name is the owner's display name.
	Name string
}

// Request is a request for a lease.
type Request struct {
	Paths  []Path
	Mode   Mode // the zero value is Exclusive
	Holder Holder
	// Former are further ids of the holder, under which it may have leases that Exact and Fresh are about.
	Former []string
	// User is the user that the holder belongs to, if any. With UserLocks above 0, a user that has so many leases, under
	// any holder, gets no further one. Concurrent requests may exceed it by a few.
	User      string
	UserLocks int
	// Slots is the number of holders that an exclusive target admits at once; 0 and 1 mean one.
	Slots int
	// TTL is how long the lease lasts without an extension.
	TTL time.Duration
	// Wait is the maximum time in the queue; 0 means no waiting.
	Wait time.Duration
	// Ticket names the holder's place in the queue, if it is not empty. A client whose request broke or whose Wait is
	// over may ask again for the same paths with the ticket. It then keeps its place, for at least [StubKept] after
	// its last Wait. While no request waits at the place, it blocks nobody. A ticket has at most 64 letters, digits,
	// "-" and "_". A later request replaces an earlier one that waits with the same ticket. A ticket is for one
	// acquisition: after its lease is released or [Table.GiveUp] is called, requests with it fail with [ErrGivenUp],
	// however late they arrive.
	Ticket string
	// Exact is for a holder whose tabs exclude each other by a lock of their own. If leases of the same holder
	// conflict that such a lock would have excluded, their tab is gone. The request then fails at once with
	// *[LeftError]. It ends only those of them whose tokens are in Replace. So a request that arrives late ends
	// nothing that was granted after the client sent it. A request with Fresh never ends a lease that was acquired
	// with Exact.
	Exact   bool
	Replace []int64
	// Browser names the tabs that exclude each other, if it is not empty. Two browsers may have one secret, and then are one holder: a lease
	// of the other browser is neither in a [LeftError] nor ended by Fresh. It has at most 64 letters, digits, "-" and "_".
	Browser string
	// First puts the request before all others in the queue while it waits, because the holder hands the lock over to
	// it. Its ticket keeps its usual place.
	First bool
	// PassOn hands over the leases that the request replaces to it, before all waiters. It is for a holder that hands
	// the lock over between its own tabs.
	PassOn bool
	// Queued is called when the request has joined the queue, if it is not nil. It is not called for a request that
	// need not wait.
	Queued func()
	// Again lets the holder of exactly this lease ask again. That extends the lease and keeps its token.
	Again bool
	// Fresh is for clients that do not know Exact. It first ends the holder's own conflicting leases, as if they had
	// been released. It is for a holder whose tabs exclude each other by a lock of their own, so that an existing
	// lease belongs to a tab that is gone. No such lock exists between a slot and another kind of lease on the same
	// place, so those leases stay.
	Fresh bool
	// Note is kept with the lease, for an interface that needs more than the table knows. It has at most [MaxNote] bytes.
	Note string
}

// MaxNote is the maximum size of a note in bytes.
const MaxNote = 4 << 10

// Lease is a granted request.
type Lease struct {
	// ID names the lease; see [Table.Renew].
	ID     string
	Holder Holder
	Paths  []Path
	Mode   Mode
	// Slots is the number of holders that the target admits at once, and Slot is the number of this one, from 0.
	Slots, Slot int
	// Token is greater than that of every earlier grant. Leases that do not exclude each other, of different holders,
	// may share a token.
	Token    int64
	LockedAt time.Time
	// ExpiresAt is when the lease ends without another extension.
	ExpiresAt time.Time
	Note      string // of the request
}

// replaces reports whether a request ends a conflicting claim.
func (r Request) replaces(s storedLease) bool {
	return r.supersedes(s) && (r.Fresh && !s.Exact && r.Browser == s.Browser || r.Exact && slices.Contains(r.Replace, s.token))
}

// supersedes reports whether a lock between the holder's tabs would have excluded the conflicting claim.
func (r Request) supersedes(s storedLease) bool {
	return (s.Holder == r.Holder.ID || slices.Contains(r.Former, s.Holder)) &&
		(whole(r.Mode, r.Slots) && cover(r.Paths, s.Paths) || whole(s.Mode, s.Slots) && cover(s.Paths, r.Paths))
}

// whole reports whether a lease on a target excludes all other owners.
func whole(m Mode, slots int) bool { return m == Exclusive && slots <= 1 }

var ticketName = regexp.MustCompile(`^[A-Za-z0-9_-]{0,64}$`)

// Check returns *[InvalidError] for a request that [Table.Acquire] refuses whatever the table has.
func (r Request) Check() error {
	_, err := r.normal()
	return err
}

func (r Request) normal() (Request, error) {
	if r.Mode == "" {
		r.Mode = Exclusive
	}
	if r.Slots == 0 {
		r.Slots = 1
	}
	switch {
	case r.Mode != Exclusive && r.Mode != Shared:
		return r, &InvalidError{`mode is "exclusive" or "shared"`}
	case r.Slots < 1 || r.Slots > maxSlots:
		return r, &InvalidError{fmt.Sprintf("slots is 1 to %d", maxSlots)}
	case r.Slots > 1 && r.Mode == Shared:
		return r, &InvalidError{"a shared lock has no slots: any number may hold it"}
	case len(r.Paths) == 0 || len(r.Paths) > maxPaths:
		return r, &InvalidError{fmt.Sprintf("paths are 1 to %d", maxPaths)}
	case !ticketName.MatchString(r.Ticket):
		return r, &InvalidError{`a ticket has at most 64 letters, digits, "-" and "_"`}
	case !ticketName.MatchString(r.Browser):
		return r, &InvalidError{`browser has at most 64 letters, digits, "-" and "_"`}
	case len(r.Note) > MaxNote:
		return r, &InvalidError{fmt.Sprintf("a note has at most %d bytes", MaxNote)}
	case r.TTL <= 0:
		return r, &InvalidError{"the time to live must be positive"}
	}
	for _, p := range r.Paths {
		if err := p.check(); err != nil {
			return r, err
		}
	}
	r.Paths = merged(r.Paths, r.Mode)
	if r.Size() > maxSize {
		return r, &InvalidError{"the paths are too long: their JSON times their number has at most 64 KiB"}
	}
	return r, nil
}

// maxSize is the maximum of [Request.Size].
const maxSize = 64 << 10

// Size is about the number of bytes that the paths of the lease take in the store: each path is a key, and its value has all paths.
func (r Request) Size() int {
	text, err := json.Marshal(r.Paths)
	if err != nil {
		panic(err) // strings
	}
	return len(r.Paths) * len(text)
}
