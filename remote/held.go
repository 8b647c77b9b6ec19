package remote

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/internal/wait"
)

// held are the locks of documents that this page holds on the server, by token.
type held struct {
	mu    sync.Mutex
	terms map[int64]*term
}

// term is one such lock.
type term struct {
	_      [0]func() // disallow ==, whose code would be in the Wasm
	claim  claim
	within int64         // the token of the lock around it, or 0
	lost   chan struct{} // closed when it ended without a release
	passed chan struct{} // closed when it was passed on
	over   chan struct{} // closed when it has ended in any way

	losing, passing, ending, following, attending sync.Once

	releasing atomic.Bool // a release that passes it on was sent, or is being sent, and its effect is unknown
}

// add records a lock. It has ended already if the lock around it is being passed on.
func (h *held) add(c claim, within int64) *term {
	t := &term{claim: c, within: within, lost: make(chan struct{}), passed: make(chan struct{}), over: make(chan struct{})}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.terms == nil {
		h.terms = make(map[int64]*term)
	}
	h.terms[c.token] = t
	if around := h.terms[within]; around != nil && around.releasing.Load() {
		t.lose()
	}
	return t
}

// of returns the lock with the token, or nil.
func (h *held) of(token int64) *term {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.terms[token]
}

// endWithin ends the locks within a lock.
func (h *held) endWithin(token int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range h.terms {
		if t.within == token {
			t.lose()
		}
	}
}

// remove forgets a lock that has ended.
func (h *held) remove(t *term) {
	h.mu.Lock()
	delete(h.terms, t.claim.token)
	h.mu.Unlock()
	t.ending.Do(func() { close(t.over) })
}

// lose records that the lock has ended without a release.
func (t *term) lose() { t.losing.Do(func() { close(t.lost) }) }

// lostWith returns the channel that is closed when the lock was passed on, or when the local lock is lost. It is closed
// at once if that has happened already: the first call may be the last check before there is a lease.
func (t *term) lostWith(local <-chan struct{}) <-chan struct{} {
	t.following.Do(func() {
		go func() {
			select {
			case <-local:
				t.lose()
			case <-t.over:
			}
		}()
	})
	if wait.Closed(local) {
		t.lose()
	}
	return t.lost
}

// pass releases a lock on the server, which passes it on to the client that asked. The locks within it end first. An answer may be lost, so pass
// repeats until an answer comes or the question is no longer open. Then this page keeps the lock, unless a release may have reached
// the server: the server may have passed the lock on, or may do so later.
func (l *client) pass(ctx, open context.Context, ended <-chan struct{}, t *term) {
	for open.Err() == nil {
		before := t.releasing.Swap(true)
		if wait.Closed(ended) { // just now: open does not say so yet, and the page may edit again
			t.releasing.Store(before)
			break
		}
		l.held.endWithin(t.claim.token)
		reply, err := l.send(ctx, Request{Method: "DELETE", Path: t.claim.path, Token: t.claim.token})
		if !passing(reply, err) && !notAllowed(reply) {
			t.passing.Do(func() { close(t.passed) })
			t.lose()
			return
		}
		t.releasing.Store(before || err != nil && !unsent(err) || reply.Status >= statusServersFault)
		_ = wait.For(open, time.Second)
	}
	if t.releasing.Load() {
		t.lose()
	}
}
