//go:build js && wasm

package opfs

import (
	"context"
	"maps"
	"sync"

	"github.com/holdfast-dev/holdfast/lock"
)

// requests are the open requests of one client and its grants, by the id of their entry in the table. It needs no mutex:
// Go in Wasm runs one goroutine at a time, until that one blocks.
type requests struct {
	waiters map[string]*waiter
	grants  map[string]*grant
}

// waiter is a pending request.
type waiter struct {
	granted chan struct{} // capacity 1
	failed  chan error    // capacity 1
	holds   bool          // the table says so
	waits   bool          // for one of the channels
	left    chan struct{} // closed when it is answered
}

// begin adds a request whose entry has the id of g.
func (r *requests) begin(g *grant) *waiter {
	w := &waiter{granted: make(chan struct{}, 1), failed: make(chan error, 1), left: make(chan struct{})}
	r.waiters[g.id], r.grants[g.id] = w, g
	return w
}

// answered ends the waiting of a request.
func (r *requests) answered(id string) {
	close(r.waiters[id].left)
	delete(r.waiters, id)
}

// released forgets a grant.
func (r *requests) released(id string) {
	delete(r.grants, id)
}

// waiting reports whether a request waits.
func (r *requests) waiting() bool {
	return len(r.waiters) > 0
}

// concerned reports whether a notification names an entry of this client.
func (r *requests) concerned(ids []string) bool {
	for _, id := range ids {
		if id == everyone || r.grants[id] != nil { // a waiter has its grant already
			return true
		}
	}
	return false
}

// inform notes what a step granted, and ends the grants whose entries were stolen. own are the client's entries after the step.
func (r *requests) inform(s *session, own []*entry) {
	for _, e := range own {
		if w := r.waiters[e.id]; w != nil {
			w.holds = e.state == granted
			if !w.holds {
				select {
				case <-w.granted: // the step before this one granted it, and another client took it before the answer
				default:
				}
			}
		}
	}
	for _, mine := range s.before {
		g := r.grants[mine.id]
		if g == nil || mine.state != granted {
			continue
		}
		if there := s.t.find(mine.id); there == nil || len(there.wants) < len(mine.wants) {
			g.lose()
		}
	}
}

// tell lets a waiter go on if it holds its lock, and returns when it has gone on, so that no later one overtakes it.
func (r *requests) tell(id string) {
	if w := r.waiters[id]; w != nil && w.holds {
		signal(w.granted)
		if w.waits {
			<-w.left
		}
	}
}

// tellAll lets all waiters go on that hold their lock, in the order of the table.
func (r *requests) tellAll(own []*entry) {
	for _, e := range own {
		r.tell(e.id)
	}
}

// fail reports to all waiters that the table cannot be used. If the browser did not answer before the end of ctx, they wait on.
func (r *requests) fail(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	for w := range maps.Values(r.waiters) {
		select {
		case w.failed <- err:
		default:
		}
	}
}

// lose ends all grants.
func (r *requests) lose() {
	for _, g := range r.grants {
		g.lose()
	}
}

// grant is a granted request.
type grant struct {
	locks   *FileLocks
	id      string
	lost    chan struct{}
	gone    bool // lost is closed
	leaving sync.Once
	err     error
}

// Lost implements [lock.Grant].
func (g *grant) Lost() <-chan struct{} { return g.lost }

// Look implements [lock.Grant]. A client that steals writes this into the table; its notification may arrive late.
func (g *grant) Look(ctx context.Context, since lock.Instant) error {
	if !g.locks.steps.turn.take(ctx) {
		return context.Cause(ctx)
	}
	seen := g.locks.steps.seen
	g.locks.steps.turn.give()
	if seen > since.Mono {
		return nil
	}
	return g.locks.steps.visit(ctx, nothing)
}

func (g *grant) lose() {
	if !g.gone {
		g.gone = true
		close(g.lost)
	}
}

var errNotReleased = &lock.Error{Code: lock.CodeReleaseFailed, Operation: lock.OpRelease, Err: context.DeadlineExceeded,
	Detail: "the browser's file storage did not answer in time; the lock is free when it answers, or when this page is closed"}

// Release implements [lock.Grant]. If the table cannot be written, the next successful step removes the entry, or other
// clients remove it once this client has ended.
func (g *grant) Release(ctx context.Context) error {
	g.leaving.Do(func() {
		ctx, stop := g.locks.steps.patient(ctx, errNotReleased)
		defer stop()
		g.locks.steps.requests.released(g.id)
		if g.err = g.locks.steps.remove(ctx, g.id); g.err != nil {
			g.locks.maintenance.wake()
		}
	})
	return g.err
}

// signal fills a channel of capacity 1, unless it is full.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
