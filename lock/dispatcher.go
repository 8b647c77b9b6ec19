package lock

import (
	"context"
	"sync"

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

	mu     sync.Mutex
	queue  []delivery
	wake   chan struct{} // capacity 1: a wake-up is never lost and never blocks
	ended  bool          // nothing more is queued
	silent bool          // unsubscribed: queued events are not handled
}

// delivery is an event or, if seen is set, a mark in the queue.
type delivery struct {
	event Event
	seen  chan struct{}
}

func newDispatcher() *dispatcher {
	return &dispatcher{listeners: make(map[*listener]struct{})}
}

// subscribe calls handle for every event emitted from now on, until unsubscribe is called.
func (d *dispatcher) subscribe(handle func([]Event), atOnce int) (unsubscribe func()) {
	l := &listener{handle: handle, atOnce: atOnce, wake: make(chan struct{}, 1)}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return func() {}
	}
	d.listeners[l] = struct{}{}
	d.running.Go(l.run)
	return func() {
		d.mu.Lock()
		delete(d.listeners, l)
		d.mu.Unlock()
		l.stop(true)
	}
}

// emit queues the event for every listener and returns.
func (d *dispatcher) emit(e Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for l := range d.listeners {
		l.push(delivery{event: e})
	}
}

// tell delivers one event to one function, independently of all listeners.
func (d *dispatcher) tell(handle func(Event), e Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.running.Go(func() { guarded(one(handle), []Event{e}) })
	}
}

// flush returns when every listener has handled the events emitted so far, or with the cause when ctx ends.
func (d *dispatcher) flush(ctx context.Context) error {
	var seen []chan struct{}
	d.mu.Lock()
	for l := range d.listeners {
		mark := delivery{seen: make(chan struct{})}
		if l.push(mark) {
			seen = append(seen, mark.seen)
		}
	}
	d.mu.Unlock()
	for _, mark := range seen {
		select {
		case <-mark:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// close lets the listeners handle the emitted events, then ends their goroutines. It returns when they have ended, or
// with the cause when ctx ends.
func (d *dispatcher) close(ctx context.Context) error {
	d.mu.Lock()
	d.closed = true
	for l := range d.listeners {
		l.stop(false)
		delete(d.listeners, l)
	}
	d.mu.Unlock()
	return wait.Group(ctx, &d.running)
}

func (l *listener) push(next delivery) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return false
	}
	l.queue = append(l.queue, next)
	l.signal()
	return true
}

func (l *listener) stop(silent bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended, l.silent = true, l.silent || silent
	l.signal()
}

func (l *listener) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *listener) run() {
	for range l.wake {
		for {
			events, seen, silent := l.pop()
			if events == nil && seen == nil {
				break
			}
			if events != nil && !silent {
				guarded(l.handle, events)
			}
			if seen != nil {
				close(seen)
			}
		}
		if l.finished() {
			return
		}
	}
}

// pop returns the next events, and the mark behind them, if there is one.
func (l *listener) pop() (events []Event, seen chan struct{}, silent bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.queue) > 0 && seen == nil && len(events) < l.atOnce {
		if next := l.queue[0]; next.seen != nil {
			seen = next.seen
		} else {
			events = append(events, next.event)
		}
		l.queue = l.queue[1:]
	}
	return events, seen, l.silent
}

func (l *listener) finished() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended && len(l.queue) == 0
}

// one turns a handler of single events into one of several.
func one(handle func(Event)) func([]Event) {
	return func(events []Event) { handle(events[0]) }
}

// guarded recovers a panic of a listener and reports it, so that other listeners are not affected.
func guarded(handle func([]Event), events []Event) {
	defer func() {
		if r := recover(); r != nil {
			println("holdfast: a listener panicked on", string(events[0].Type)+":", PanicText(r))
		}
	}()
	handle(events)
}
