package lock

import (
	"context"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/inorder"
	"github.com/holdfast-dev/holdfast/internal/wait"
)

// dispatcher delivers every event to every listener in one order.
//
// Each listener has a queue and a goroutine of its own, so a listener that blocks or
// panics harms no other. No lock is held while a listener runs.
type dispatcher struct {
	mu        sync.Mutex
	listeners map[*listener]struct{}
	running   sync.WaitGroup
	closed    bool
}

type listener struct {
	handle func([]Event)
	atOnce int // maximum number of events per call
	calls  *inorder.Queue

	mu     sync.Mutex
	events []Event // emitted and not yet handled
	silent bool    // unsubscribed: events are not handled
}

func newDispatcher() *dispatcher {
	return &dispatcher{listeners: make(map[*listener]struct{})}
}

// subscribe calls handle for every event emitted from now on, until unsubscribe is called.
func (d *dispatcher) subscribe(handle func([]Event), atOnce int) (unsubscribe func()) {
	l := &listener{handle: handle, atOnce: atOnce, calls: inorder.New()}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return func() {}
	}
	d.listeners[l] = struct{}{}
	d.running.Go(l.calls.Run)
	return func() {
		d.mu.Lock()
		delete(d.listeners, l)
		d.mu.Unlock()
		l.mu.Lock()
		l.silent = true
		l.mu.Unlock()
		l.calls.Close()
	}
}

// emit queues the event for every listener and returns.
func (d *dispatcher) emit(e Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for l := range d.listeners {
		l.mu.Lock()
		l.events = append(l.events, e)
		l.mu.Unlock()
		l.calls.Push(l.deliver)
	}
}

// notify delivers one event to one function, independently of all listeners.
func (d *dispatcher) notify(handle func(Event), e Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.running.Go(func() { guarded(one(handle), []Event{e}) })
	}
}

// flush returns when every listener has handled the events emitted so far, or with the cause when ctx ends.
func (d *dispatcher) flush(ctx context.Context) error {
	d.mu.Lock()
	marks := make([]<-chan struct{}, 0, len(d.listeners))
	for l := range d.listeners {
		marks = append(marks, l.calls.Mark())
	}
	d.mu.Unlock()
	return inorder.Flush(ctx, marks...)
}

// close lets the listeners handle the emitted events, then ends their goroutines. It returns when they have ended, or
// with the cause when ctx ends.
func (d *dispatcher) close(ctx context.Context) error {
	d.mu.Lock()
	d.closed = true
	for l := range d.listeners {
		l.calls.Close()
		delete(d.listeners, l)
	}
	d.mu.Unlock()
	return wait.Group(ctx, &d.running)
}

// deliver handles the next events. One call is queued for each event; it finds none if an earlier one took more.
func (l *listener) deliver() {
	l.mu.Lock()
	n := min(l.atOnce, len(l.events))
	events := l.events[:n:n]
	l.events = l.events[n:]
	silent := l.silent
	l.mu.Unlock()
	if n > 0 && !silent {
		guarded(l.handle, events)
	}
}

// one turns a handler of single events into one of several.
func one(handle func(Event)) func([]Event) {
	return func(events []Event) { handle(events[0]) }
}

func guarded(handle func([]Event), events []Event) {
	inorder.Guard(string(events[0].Type), func() { handle(events) })
}
