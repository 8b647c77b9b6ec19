package autosave

import (
	"time"

	"github.com/holdfast-dev/holdfast/lock"
)

// retries knows the outcome of the last attempt to acquire the lock, load or save, and when the next attempt to save is due. Only
// the loop uses it.
type retries struct {
	backoff  lock.Backoff
	failures int // in a row
	retryAt  time.Time
	next     func() time.Duration
	lastErr  error
}

// failed records a failure of the store, after which AutoSave tries again.
func (r *retries) failed(err error) {
	r.failures++
	r.lastErr = err
	r.retryAt = time.Now().Add(r.next())
}

// recovered records a success.
func (r *retries) recovered() {
	r.failures, r.lastErr, r.next = 0, nil, r.backoff.Delays()
}
