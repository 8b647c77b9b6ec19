package locks

import "errors"

var (
	// ErrNotFound means that there is no such lease: released, expired, or never there.
	ErrNotFound = errors.New("there is no such lock")
	// ErrNotHolder means that the lock is somebody else's.
	ErrNotHolder = errors.New("the lock is held by somebody else")
	// ErrTimeout means that the lock did not become free while the caller waited.
	ErrTimeout = errors.New("the lock did not become free in time")
	// ErrReplaced means that the same place in line was asked for again. Most likely nobody hears this answer; to whoever does,
	// because a request that was lost has come late, the place is still there.
	ErrReplaced = errors.New("a later request has come with this ticket")
	// ErrGivenUp means that the acquisition of this ticket has ended: the client gave it up or released its lease.
	ErrGivenUp = errors.New("the acquisition of this ticket has ended")
	// ErrTooMany means that the holder has or waits for as much as one may.
	ErrTooMany = errors.New("this session has or waits for too many locks; give some back")
	// ErrTooManyTickets means that the store remembers as many tickets of the holder as it does for one.
	ErrTooManyTickets = errors.New("this session has used too many tickets lately; wait half a minute, or use fewer")
	// ErrDeadlock means that the caller would have waited for somebody who waits for the caller.
	ErrDeadlock = errors.New("waiting would never end: the holder waits for this caller")
)

// DeniedError says who is in the way. It matches [ErrTimeout] when the caller had waited.
type DeniedError struct {
	// Holders are the leases in the way, oldest first, at most [maxNamed] of them. It is empty where nobody holds but
	// others wait and come first.
	Holders []Lease
	waited  bool
}

func (e *DeniedError) Error() string {
	if len(e.Holders) == 0 {
		return "others wait and come first"
	}
	return "held by " + e.Holders[0].Holder.Name
}

// Is matches ErrTimeout.
func (e *DeniedError) Is(target error) bool { return e.waited && target == ErrTimeout }

// LeftError says which leases of the holder itself are in the way, see [Request.Exact].
type LeftError struct{ Tokens []int64 }

func (e *LeftError) Error() string {
	return "a tab of this browser that is gone holds it"
}

// InvalidError says what is wrong with a request.
type InvalidError struct{ Reason string }

func (e *InvalidError) Error() string { return e.Reason }
