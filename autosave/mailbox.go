package autosave

import (
	"context"
	"sync"

	"github.com/holdfast-dev/holdfast/lock"
)

// mailbox delivers events to one listener in order, on a goroutine of its own: a listener that blocks or panics affects
// nothing else.
type mailbox struct {
	handle func(Event)
	wake   chan struct{} // capacity 1: a wake-up is never lost and never blocks
	done   chan struct{}

	mu     sync.Mutex
	queue  []delivery
	closed bool
}

// delivery is an event or, if seen is set, a mark in the queue.
type delivery struct {
	event Event
	then  func()
	seen  chan struct{}
}

func newMailbox(handle func(Event)) *mailbox {
	m := &mailbox{handle: handle, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go m.run()
	return m
}

func (m *mailbox) push(e Event) { m.pushThen(e, nil) }

// pushThen calls then, if it is set, when the event is delivered.
func (m *mailbox) pushThen(e Event, then func()) {
	m.mu.Lock()
	m.queue = append(m.queue, delivery{event: e, then: then})
	m.mu.Unlock()
	m.signal()
}

// flush returns when everything pushed before is delivered, or with the cause when ctx ends.
func (m *mailbox) flush(ctx context.Context) error {
	seen := make(chan struct{})
	m.mu.Lock()
	m.queue = append(m.queue, delivery{seen: seen})
	m.mu.Unlock()
	m.signal()
	select {
	case <-seen:
		return nil
	case <-m.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// close ends the goroutine after it has delivered everything pushed before.
func (m *mailbox) close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.signal()
}

func (m *mailbox) signal() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

func (m *mailbox) run() {
	defer close(m.done)
	for range m.wake {
		for {
			m.mu.Lock()
			if len(m.queue) == 0 {
				closed := m.closed
				m.mu.Unlock()
				if closed {
					return
				}
				break
			}
			e := m.queue[0]
			m.queue = m.queue[1:]
			m.mu.Unlock()
			if e.seen != nil {
				close(e.seen)
			} else {
				m.deliver(e.event)
				if e.then != nil {
					e.then()
				}
			}
		}
	}
}

func (m *mailbox) deliver(e Event) {
	defer func() {
		if r := recover(); r != nil {
			println("holdfast: a listener panicked on", string(e.Type)+":", lock.PanicText(r))
		}
	}()
	if m.handle != nil {
		m.handle(e)
	}
}
