package locks

import (
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

// Holder is who asks: an owner that others may see.
type Holder struct {
	// ID tells owners apart.
	ID string
	// Name is what people call the owner.
	Name string
}

// Request is what somebody wants.
type Request struct {
	Paths  []Path
	Mode   Mode // the zero value is Exclusive
	Holder Holder
	// Slots is how many holders an exclusive target admits at once; 0 and 1 are one.
	Slots int
	// TTL is how long the lease lasts without an extension.
	TTL time.Duration
	// Wait is how long to wait in line; 0 is not at all.
	Wait time.Duration
	// Ticket, if it is not empty, names the holder's place in line. Who asks for the same again with it, because the
	// request broke or its Wait was over, stands where it stood, for at least [StubKept] after its last Wait. While
	// nobody asks, the place keeps nobody else waiting. It has letters, digits, "-" and "_", 64 at most; a later request
	// ends an earlier one that waits with it. A ticket is for one acquisition: once its lease was released, or
	// [Table.GiveUp] was called, requests with it fail with [ErrGivenUp], however late they arrive.
	Ticket string
	// Exact is for a holder whose tabs exclude each other by a lock of their own. The request fails with *[LeftError] at once
	// where leases of the holder are in the way that such a lock would have excluded: those of a tab that is gone. It ends
	// those of them whose tokens are in Replace, and no others. So a request that arrives late ends nothing that was granted
	// after the client has sent it. No request with Fresh ends a lease that was acquired so.
	Exact   bool
	Replace []int64
	// First puts the request before all others in line, for as long as it waits: the holder passes the lock on to it. Its ticket
	// keeps the place that it has otherwise.
	First bool
	// PassOn has the leases that the request replaces passed on to it, before all who wait: the holder passes the lock on
	// between its own tabs.
	PassOn bool
	// Queued, where set, is called when the request is in line. A request that need not wait never is.
	Queued func()
	// Again lets the holder of exactly this lease ask again: that extends it and keeps its token.
	Again bool
	// Fresh is for clients that do not know Exact: it ends the holder's own leases first that are in the way, as if they had been given back: for a holder whose
	// tabs keep each other out by a lock of their own, so that what is there is of one that is gone. Between
	// slots and what is no slot of the same place there is no such lock: those stay.
	Fresh bool
}

// Lease is a granted request.
type Lease struct {
	// ID names the lease; see [Table.Renew].
	ID     string
	Holder Holder
	Paths  []Path
	Mode   Mode
	// Slot is which of the target's slots was taken, from 0.
	Slot int
	// Token is greater than that of every earlier grant.
	Token    int64
	LockedAt time.Time
	// ExpiresAt is when the lease ends unless it is extended.
	ExpiresAt time.Time
}

// replaces reports whether a request ends what stands in its way.
func (r Request) replaces(s stand) bool {
	return r.supersedes(s) && (r.Fresh && !s.Exact || r.Exact && slices.Contains(r.Replace, s.token))
}

// supersedes reports whether a lock between the tabs of the holder would have excluded the claim in the way.
func (r Request) supersedes(s stand) bool {
	return s.Holder == r.Holder.ID &&
		(whole(r.Mode, r.Slots) && cover(r.Paths, s.Paths) || whole(s.Mode, s.Slots) && cover(s.Paths, r.Paths))
}

// whole reports whether a target is taken from everybody else.
func whole(m Mode, slots int) bool { return m == Exclusive && slots <= 1 }

var ticketName = regexp.MustCompile(`^[A-Za-z0-9_-]{0,64}$`)

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
	case r.TTL <= 0:
		return r, &InvalidError{"the time to live must be positive"}
	}
	for _, p := range r.Paths {
		if err := p.check(); err != nil {
			return r, err
		}
	}
	r.Paths = merged(r.Paths, r.Mode)
	return r, nil
}
