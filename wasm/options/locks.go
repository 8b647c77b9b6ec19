package options

import (
	"math"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/lock"
)

// Acquire reads the options of an acquisition.
func (r *Reader) Acquire() lock.AcquireOptions {
	o := lock.AcquireOptions{
		Path:              r.Path("path"),
		Paths:             r.Paths("paths"),
		Slots:             r.Whole("slots"),
		LeaseID:           r.Text("leaseId"),
		Mode:              lock.Mode(r.Choice("mode")),
		TTL:               r.Duration("ttlMs", 0),
		HeartbeatInterval: r.Duration("heartbeatIntervalMs", 0),
		Timeout:           r.Duration("timeoutMs", lock.NoWait),
		Backoff:           backoff(r.Inner("backoff")),
		PreferredStrategy: lock.Strategy(r.Choice("preferredStrategy")),
		IfAvailable:       r.Flag("ifAvailable", false),
		Steal:             r.Flag("steal", false),
	}
	if o.Timeout != 0 && o.Backoff.MaxRetries == 0 {
		o.Backoff.MaxRetries = lock.Unlimited // the caller has said how long to wait
	}
	return o
}

// backoff reads the object in an option; nil is an absent one.
func backoff(inner *Reader) lock.Backoff {
	if inner == nil {
		return lock.Backoff{}
	}
	b := lock.Backoff{
		InitialDelay: inner.Duration("initialDelayMs", 0),
		Multiplier:   inner.Number("multiplier", 0),
		MaxDelay:     inner.Duration("maxDelayMs", 0),
		Jitter:       inner.Number("jitter", lock.NoJitter),
		MaxRetries:   lock.Unlimited,
	}
	if n := inner.Number("maxRetries", lock.Unlimited); n != lock.Unlimited {
		if n != math.Trunc(n) {
			inner.Fault("maxRetries", "must be a whole number")
		}
		b.MaxRetries = int(min(n, math.MaxInt32))
	}
	return b
}

// With reads the options of withProjectLock.
func (r *Reader) With() lock.WithOptions {
	return lock.WithOptions{AcquireOptions: r.Acquire(), KeepOnError: !r.Flag("releaseOnError", true)}
}

// Request reads the arguments of holdfast.locks.request.
func (r *Reader) Request() lock.Request {
	return lock.Request{
		Wants:       []lock.Want{{Name: r.Text("name"), Mode: lock.Mode(r.Text("mode"))}},
		IfAvailable: r.Flag("ifAvailable", false),
		Steal:       r.Flag("steal", false),
		Asked:       int64(r.Number("asked", 0) * 1000),
	}
}

// AutoSave reads the options of initAutoSave and what its page shows. Everything that is a function of the page, and
// the store, is missing.
func (r *Reader) AutoSave() autosave.Config {
	c := autosave.Config{
		Disabled:  !r.Flag("enabled", true),
		NoStandby: !r.Flag("standby", true),
		Debounce:  r.Duration("debounceMs", 0),
		Idle:      r.Duration("idleMs", 0),
		Shown:     r.Text("shown"),
		Lineage:   r.Text("lineage"),
		Dirty:     r.Flag("dirty", false),
		Limits:    autosave.Limits{MaxGenerations: r.Whole("maxGenerations"), MaxBytes: int64(r.Whole("maxBytes")), Keep: autosave.Keep(r.Choice("keep"))},
	}
	if inner := r.Inner("lock"); inner != nil {
		c.Lock = inner.Acquire()
	}
	c.Lock.LeaseID = "" // each acquisition has an id of its own
	path := r.Path("path")
	if len(c.Lock.Path) > 0 && lock.Name("", c.Lock.Path) != lock.Name("", path) {
		r.Fault("lock.path", "must be the same as path; give path alone")
	}
	c.Lock.Path = path
	r.Fail(autosave.CheckDocument(c.Lock))
	return c
}
