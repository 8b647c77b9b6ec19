package lock

import (
	"context"
	"strings"
	"time"
)

// Strategy is the mechanism that holds a lease.
type Strategy string

// The strategies.
const (
	WebLock  Strategy = "web-lock"
	FileLock Strategy = "file-lock"
	Remote   Strategy = "remote"
)

// Lease is the permission to write, as a snapshot: a renewal does not change it but yields a new one. Done and Err
// report about the lease itself and are the same for all its snapshots. The zero Lease is a lease that has ended.
type Lease struct {
	ID        string // UUID v4
	OwnerID   string
	OwnerName string
	Resource  string
	Strategy  Strategy
	Fallback  bool // held by another strategy than the first one tried
	Mode      Mode
	Paths     [][]string // the locked places; the empty path is the project itself
	Slots     int        // how many holders the place admits: 1, or AcquireOptions.Slots
	Slot      int        // the index of the slot that this lease holds, from 0
	Within    string     // the id of the enclosing lease, if there is one
	// Token is greater than that of every earlier grant of the resource.
	Token             int64
	TTL               time.Duration
	HeartbeatInterval time.Duration
	AcquiredAt        time.Time
	ExpiresAt         time.Time
	NextHeartbeatAt   time.Time
	// RenewAttempt counts the failed attempts since the last renewal.
	RenewAttempt int

	held *heldLease
}

// Excludes returns the first place that the lease locks exclusively, as [Name] spells it without the project. It is one
// of the requested places. If the lease was stolen from the holder of an ancestor, it is that ancestor. It is "" for
// the zero Lease.
func (l Lease) Excludes() string {
	if l.held == nil {
		return ""
	}
	return l.held.m.excludes(l.held.wants, l.Paths)
}

// excludes returns the first exclusive place among wants, or else the first of the paths.
func (m *Manager) excludes(wants []Want, paths [][]string) string {
	for _, w := range wants {
		for _, b := range m.config.Backends {
			if place, ok := strings.CutPrefix(w.Name, b.Name()); ok && w.Mode == Exclusive {
				return place
			}
		}
	}
	for _, path := range paths {
		return Name("", path)
	}
	return ""
}

// errNoLease is the error of the zero Lease.
var errNoLease = &Error{Code: CodeLost, Operation: OpRenew, Detail: "it was never acquired"}

// never is the life of the zero Lease.
var never = func() context.Context {
	ctx, end := context.WithCancelCause(context.Background())
	end(errNoLease)
	return ctx
}()

// Done is closed when the lease has ended, for whatever reason. From then on its owner must not write.
func (l Lease) Done() <-chan struct{} { return l.Context().Done() }

// Context returns a context that ends with the lease; its cause says why.
func (l Lease) Context() context.Context {
	if l.held == nil {
		return never
	}
	return l.held.life
}

// Err returns the reason why the lease ended: nil while it lives and after a release, otherwise an error that matches
// ErrLost or ErrStale.
func (l Lease) Err() error {
	if l.held == nil {
		return errNoLease
	}
	return l.held.failure()
}

// Renew renews the lease now instead of at its next heartbeat and returns the renewed lease. Errors match ErrStale or
// ErrLost if the lease has ended, and ErrRenewFailed if the record could not be written; the heartbeat then tries again.
// If ctx ends first, its cause is returned.
func (l Lease) Renew(ctx context.Context) (Lease, error) {
	if l.held == nil {
		return Lease{}, errNoLease
	}
	return l.held.renew(ctx)
}

// Release releases the lease: the lock first, then its record. Releasing a lease that has ended already is no error.
// Other errors match ErrReleaseFailed.
//
// ctx bounds only the waiting: if it has ended, its cause is returned, and the lease is released nevertheless.
func (l Lease) Release(ctx context.Context) error { return l.ReleaseWith(ctx, ReleaseOptions{}) }

// ReleaseWith is [Lease.Release] with options.
func (l Lease) ReleaseWith(ctx context.Context, opts ReleaseOptions) error {
	if l.held == nil {
		return nil
	}
	return l.held.release(ctx, opts)
}
