package autosave

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/lock"
)

// role is the role of this page among the others.
type role int

const (
	starting  role = iota // it is not known yet whether this page may write
	loading               // it has the lock, and reads the last saved content
	editing               // it may write
	leaving               // it saves for the last time before it releases the lock
	viewing               // another page may write
	suspended             // the page sleeps and does not want the lock
	ended
)

// tenure knows the role of this page, and the lease under which it has the role. Only the loop uses it. Other goroutines may read the atomic
// fields.
type tenure struct {
	loop
	role              role
	term              int64 // rises with every change of role: work of an earlier term is void
	readOnly          atomic.Bool
	lease             lock.Lease
	leaseDone         <-chan struct{}            // nil without a lease
	held              atomic.Pointer[lock.Lease] // the lease, once the page has loaded its content; nil before and after
	unfenced          bool                       // the previous editor could not be fenced: nothing is written before that
	knowsReadonly     bool                       // of autosave:readonly and autosave:editable, the last one was readonly
	preparingReadonly bool                       // autosave:readonly is being prepared
	queued            bool                       // this page waits for the lock
	letsPassUntil     time.Time                  // until then this page lets the requests of other pages pass
	departing         int                        // calls of Suspend and Dispose that are under way
	stop              context.CancelFunc         // ends the waiting or loading of this term
	verdict           chan struct{}              // closed, and replaced, when it is known which page edits

	after        int64                // the highest token of another owner that the store has reported; the next lease needs a higher one
	refusals     int                  // leases in a row whose token the store refused
	refusalPause func() time.Duration // the pauses after such leases; they grow
}

// enter changes the role. All work of the previous role becomes void.
func (t *tenure) enter(r role) {
	t.role = r
	t.term++
	t.queued, t.preparingReadonly = false, false
	t.readOnly.Store(r != editing)
}

// verifying reports whether this page has a lease that it is verifying.
func (t *tenure) verifying() bool { return t.role == starting && t.leaseDone != nil }

// writes reports whether this page may write.
func (t *tenure) writes() bool { return t.role == editing || t.role == leaving }

// idles reports whether this page may not write, and is not about to.
func (t *tenure) idles() bool {
	return t.role == viewing || t.role == suspended || t.departing > 0 && !t.writes()
}

// editingLease returns the lease under which this page edits, if any. Any goroutine may call it.
func (t *tenure) editingLease() (lock.Lease, bool) {
	l := t.held.Load()
	if l == nil || t.readOnly.Load() {
		return lock.Lease{}, false
	}
	return *l, true
}

// announceVerdict notifies the callers that wait until it is known which page edits.
func (t *tenure) announceVerdict() {
	close(t.verdict)
	t.verdict = make(chan struct{})
}

// background runs f on a goroutine of its own for the present term: its context ends with the term. step runs a function on the loop, and
// reports whether it has: it has not if the term is over.
func (t *tenure) background(f func(ctx context.Context, step func(func()) bool)) {
	ctx, stop := context.WithCancel(t.life)
	term := t.term
	t.stop = stop
	t.work.Go(func() {
		defer stop()
		f(ctx, func(what func()) bool {
			current := false
			t.do(func() {
				if current = t.term == term; current {
					what()
				}
			})
			return current
		})
	})
}

// release releases the last lease, if it has not ended, without waiting for the result.
func (t *tenure) release() {
	lease := t.lease
	t.work.Go(func() { giveBack(lease) })
}

// giveBack releases a lease that is no longer needed.
func giveBack(l lock.Lease) {
	ctx, stop := context.WithTimeout(context.Background(), 2*answerLimit)
	defer stop()
	_ = l.Release(ctx)
}

// renew renews the lease. It does not wait for a lock that hangs.
func renew(ctx context.Context, lease lock.Lease) error {
	ctx, stop := context.WithTimeout(ctx, answerLimit)
	defer stop()
	_, err := lease.Renew(ctx)
	return err
}
