package lock

import (
	"strconv"
	"time"
)

// NoWait as AcquireOptions.Timeout means one attempt and no waiting.
const NoWait time.Duration = -1

// Defaults of [AcquireOptions].
const (
	DefaultWebLockTTL        = 25 * time.Second
	DefaultTTL               = 30 * time.Second
	DefaultHeartbeatInterval = 10 * time.Second
	DefaultTimeout           = 10 * time.Minute
)

// answerLimit is a limit for calls that the caller does not bound: an answer that needs no waiting, or giving a lease
// back.
const answerLimit = 5 * time.Second

// AcquireOptions configure how a lease is acquired and kept. The zero value is the default.
type AcquireOptions struct {
	// LeaseID is the id of the lease, for callers that need it from the first event on. It must be unique. Default: a
	// new UUID.
	LeaseID string
	// Path is the place in the project's tree to lock. The place is locked in the mode. Its ancestors, the project
	// itself included, are locked shared. The empty path is the project.
	Path []string
	// Paths are several places instead of one, all or nothing, taken in one global order.
	Paths [][]string
	// Slots is how many holders the place admits at once. All clients that lock it should set the same number. Default
	// 1, at most MaxSlots.
	Slots             int
	Mode              Mode          // default Exclusive
	TTL               time.Duration // default 25 s for Web Locks, 30 s otherwise
	HeartbeatInterval time.Duration // default 10 s; must be shorter than TTL
	Timeout           time.Duration // default 10 min; NoWait for one attempt
	Backoff           Backoff
	PreferredStrategy Strategy // tried first, if the manager supports it
	IfAvailable       bool     // fail with ErrDenied instead of waiting, with ErrTimeout if nothing answers for 5 s
	Steal             bool     // take the lock from its holder, whose lease ends with ErrLost
	// After is a token that the new lease must exceed. A store knows this token after the records were lost or set
	// back.
	After int64
	// OnReadonly is called once when a final failure, during the acquisition or later, means that the owner may not
	// write. It runs on a goroutine of its own.
	OnReadonly func(Event)
}

func (o *AcquireOptions) setDefaults() {
	if o.LeaseID == "" {
		o.LeaseID = NewID()
	}
	orDefault(&o.Mode, Exclusive)
	orDefault(&o.HeartbeatInterval, DefaultHeartbeatInterval)
	orDefault(&o.Timeout, DefaultTimeout)
	o.Backoff = o.Backoff.withDefaults()
}

// ttl returns the TTL under a strategy.
func (o *AcquireOptions) ttl(s Strategy) time.Duration {
	switch {
	case o.TTL != 0:
		return o.TTL
	case s == WebLock:
		return DefaultWebLockTTL
	}
	return DefaultTTL
}

// check reports the first option that cannot be used. Messages name the options as
// the declaration file spells them.
func (o *AcquireOptions) check(backends []Backend) *Error {
	switch {
	case o.Mode != Exclusive && o.Mode != Shared:
		return invalid("mode", "must be \"exclusive\" or \"shared\", not "+strconv.Quote(string(o.Mode)))
	case o.checkTree() != nil:
		return o.checkTree()
	case o.TTL < 0:
		return invalid("ttlMs", "must be positive")
	case o.HeartbeatInterval < 0:
		return invalid("heartbeatIntervalMs", "must be positive")
	case o.Timeout < 0 && o.Timeout != NoWait:
		return invalid("timeoutMs", "must not be negative")
	case o.Steal && o.Mode == Shared:
		return invalid("steal", `needs mode "exclusive"`)
	case o.Steal && o.IfAvailable:
		return invalid("steal", "cannot be combined with ifAvailable")
	}
	switch o.PreferredStrategy {
	case "", WebLock, FileLock, Remote:
	default:
		return invalid("preferredStrategy", "must be \"web-lock\", \"file-lock\" or \"remote\", not "+strconv.Quote(string(o.PreferredStrategy)))
	}
	for _, b := range backends {
		if ttl := o.ttl(b.Strategy); o.HeartbeatInterval >= ttl {
			return invalid("heartbeatIntervalMs", "("+millis(o.HeartbeatInterval)+") must be shorter than ttlMs ("+millis(ttl)+")")
		}
	}
	return o.Backoff.check()
}

// ReleaseOptions configure [Lease.ReleaseWith].
type ReleaseOptions struct {
	// Force makes Release succeed even if the record could not be removed. The lock is released and lock:error reports
	// the failure in any case.
	Force bool
}

// WithOptions configure [Manager.With].
type WithOptions struct {
	AcquireOptions
	// KeepOnError leaves the lease to the executor if the executor returns an error.
	KeepOnError bool
}
