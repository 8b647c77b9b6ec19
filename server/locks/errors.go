package locks

import "errors"

var (
	// ErrNotFound means that the lease does not exist: it was released, it expired, or it never existed.
	ErrNotFound = errors.New("there is no such lock")
	// ErrNotHolder means that another owner holds the lock.
	ErrNotHolder = errors.New("the lock is held by somebody else")
	// ErrTimeout means that the lock did not become free while the caller waited.
	ErrTimeout = errors.New("the lock did not become free in time")
	// ErrReplaced means that a later request took over the same place in the queue. Usually nobody receives this
	// error. If a lost request arrives late, its client receives it, and the place still exists.
	ErrReplaced = errors.New("a later request has come with this ticket")
	// ErrGivenUp means that the acquisition of this ticket has ended: the client gave it up or released its lease.
	ErrGivenUp = errors.New("the acquisition of this ticket has ended")
	// ErrTooMany means that the holder has reached the limit of held or awaited locks.
	ErrTooMany = errors.New("this session has or waits for too many locks; release some")
	// ErrTooManyOfUser means that the user has reached the limit of held locks.
	ErrTooManyOfUser = errors.New("you hold as many locks as a user may; release some")
	// ErrTooManyTickets means that the store remembers the maximum number of tickets of this holder.
	ErrTooManyTickets = errors.New("this session has used too many tickets lately; wait half a minute, or use fewer")
	// ErrDeadlock means that the caller would wait for a holder that waits for the caller.
	ErrDeadlock = errors.New("waiting would never end: the holder waits for this caller")
)

// DeniedError names the conflicting holders. It matches [ErrTimeout] if the caller waited.
type DeniedError struct {
	// Holders are the conflicting leases, oldest first, at most [maxNamed]. It is empty if there is no holder but
	// earlier waiters come first.
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

// LeftError names the holder's own leases that conflict with its request, see [Request.Exact].
type LeftError struct{ Tokens []int64 }

func (e *LeftError) Error() string {
	return "a tab of this browser that is gone holds it"
}

// InvalidError says why a request is invalid.
type InvalidError struct{ Reason string }

func (e *InvalidError) Error() string { return e.Reason }
