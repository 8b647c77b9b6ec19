package lock

import "context"

// Mode is how a lock is shared.
type Mode string

// An exclusive lock admits one holder; shared ones admit each other.
const (
	Exclusive Mode = "exclusive"
	Shared    Mode = "shared"
)

// Want is one name to lock and its mode.
type Want struct {
	Name string
	Mode Mode
}

// Request is the argument of [Locker].Request.
type Request struct {
	// Wants are taken in the order given, all or nothing.
	Wants []Want
	// IfAvailable asks for an answer instead of a place in the queue.
	IfAvailable bool
	// Steal takes the names from their holders, ahead of all waiters. It needs Exclusive and excludes IfAvailable.
	Steal bool
	// From, if not nil, contains the only clients from which Steal may take the names. [Snapshot] names them. If another client holds
	// one, the request is denied. A Locker that cannot compare and steal in one step ignores it.
	From []string
	// Asked, if not zero, is the time of the request, as a Unix time in microseconds. It is a hint for a Locker that
	// receives some requests later than others. A request never gets a worse place for it than by its arrival.
	Asked int64
	// OnLocal, if set, is called by a Locker over several machines. The Locker holds the names on this machine then,
	// and waits for the rest.
	OnLocal func()
}

// Locker decides which client holds a name. It has the shape of the Web Locks API
// (https://w3c.github.io/web-locks/): no TTL, no files, first come first served.
//
// Implementations must satisfy the suite in lock/locktest:
//   - Request returns a Grant once every name is granted. With IfAvailable, the error matches ErrDenied if a name is
//     not free. It also matches ErrFallbackConflict if the record of another owner shows that. If ctx ends first, the error
//     is context.Cause(ctx). If the mechanism is missing or refuses to work, the error matches ErrWebLockUnsupported or
//     ErrUnsupported. For a name that cannot be locked, it matches ErrInvalidArgument.
//   - A request whose ctx has ended is in no queue. A grant that comes at the same moment is given back.
//   - Requests of one name are granted in the order of arrival. A shared request does not overtake an exclusive one
//     ahead of it.
type Locker interface {
	Request(ctx context.Context, r Request) (Grant, error)
	// Query returns the holders and the waiters, as they were at one moment in the past.
	Query(ctx context.Context) (Snapshot, error)
}

// Grant is a granted request.
type Grant interface {
	// Release gives everything back. Calls after the first do nothing.
	Release(ctx context.Context) error
	// Lost is closed when the grant was taken away. It is never closed by Release.
	Lost() <-chan struct{}
	// Look closes Lost if the grant was taken away before since and the Locker has not reported that yet. It fails where
	// that cannot be found out. A Locker that closes Lost before it answers any later request has nothing to do here.
	Look(ctx context.Context, since Instant) error
}

// Snapshot is what a Locker knew at one moment.
type Snapshot struct {
	Held    []Info
	Pending []Info // in the order in which they will be granted
}

// Info is one held or awaited name.
type Info struct {
	Name     string
	Mode     Mode
	ClientID string // the browsing context or process behind it, as the Locker names it
}
