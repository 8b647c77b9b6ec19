// Package inorder calls functions one after the other, in the order in which they were pushed.
package inorder

import (
	"context"
	"sync"
)

// Queue calls the functions that are pushed to it, in order, on the goroutine that runs [Queue.Run]. Push never waits for
// them.
type Queue struct {
	wake chan struct{} // capacity 1: a wake-up is never lost and never blocks

	mu     sync.Mutex
	calls  []func()
	closed bool
	ended  bool // Run has returned, or is about to
}

// New returns an empty queue.
func New() *Queue { return &Queue{wake: make(chan struct{}, 1)} }

// Push queues a call. It reports false, and queues nothing, once Run has returned.
func (q *Queue) Push(call func()) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended {
		return false
	}
	q.calls = append(q.calls, call)
	q.signal()
	return true
}

// Mark returns a channel that is closed when everything pushed before has been called.
func (q *Queue) Mark() <-chan struct{} {
	called := make(chan struct{})
	if !q.Push(func() { close(called) }) {
		close(called)
	}
	return called
}

// Flush returns when all marks are closed, or with the cause when ctx ends.
func Flush(ctx context.Context, marks ...<-chan struct{}) error {
	for _, mark := range marks {
		select {
		case <-mark:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// Close makes Run return after everything pushed before has been called. Closing again does no harm.
func (q *Queue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.signal()
}

// Run calls what is pushed until the queue is closed and empty. It is called once.
func (q *Queue) Run() {
	for range q.wake {
		for call := q.next(); call != nil; call = q.next() {
			call()
		}
		if q.finished() {
			return
		}
	}
}

// next takes the first call, or returns nil.
func (q *Queue) next() (call func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.calls) > 0 {
		call, q.calls = q.calls[0], q.calls[1:]
	}
	return call
}

func (q *Queue) finished() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = q.closed && len(q.calls) == 0
	return q.ended
}

func (q *Queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// Guard calls a listener of an event. It recovers a panic and reports it, so that others are not affected.
func Guard(event string, listener func()) {
	defer func() {
		if r := recover(); r != nil {
			println("holdfast: a listener panicked on", event+":", PanicText(r))
		}
	}()
	listener()
}

// PanicText describes a recovered panic. It replaces fmt, which would make the Wasm a tenth larger.
func PanicText(recovered any) string {
	switch r := recovered.(type) {
	case error:
		return r.Error()
	case string:
		return r
	}
	return "a value that is neither an error nor a string"
}
