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
// report about the lease itself and are the same for all its snapshots.
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

// Excludes returns the first place that the lease locks exclusively, as [Name] spells it without the project. It is a
// place that was asked for, or an ancestor of it if the lease was stolen from a holder of that ancestor.
func (l Lease) Excludes() string { return l.held.m.excludes(l.held.wants, l.Paths) }

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

// Done is closed when the lease has ended, for whatever reason. From then on its owner must not write.
func (l Lease) Done() <-chan struct{} { return l.held.life.Done() }

// Context returns a context that ends with the lease; its cause says why.
func (l Lease) Context() context.Context { return l.held.life }

// Err returns the reason why the lease ended: nil while it lives and after a release, otherwise an error that matches
// ErrLost or ErrStale.
func (l Lease) Err() error { return l.held.failure() }

// Release gives the lease back; see [Manager.ReleaseProjectLock].
func (l Lease) Release(ctx context.Context) error {
	return l.held.release(ctx, ReleaseOptions{})
}
