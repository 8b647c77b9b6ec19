package autosave

import (
	"fmt"
	"os"
	"sync"
)

// mailbox hands events to one listener in order, on a goroutine of its own: a listener
// that blocks or panics harms nobody.
type mailbox struct {
	handle func(Event)
	wake   chan struct{} // has one place: a wake-up is never lost and never blocks
	done   chan struct{}

	mu     sync.Mutex
	queue  []Event
	closed bool
}

func newMailbox(handle func(Event)) *mailbox {
	m := &mailbox{handle: handle, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go m.run()
	return m
}

func (m *mailbox) push(e Event) {
	m.mu.Lock()
	m.queue = append(m.queue, e)
	m.mu.Unlock()
	m.signal()
}

// close ends the goroutine after it has delivered what was pushed before.
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
			m.deliver(e)
		}
	}
}

func (m *mailbox) deliver(e Event) {
	defer func() {
		if r := recover(); r != nil {
			fmt.Fprintf(os.Stderr, "holdfast: a listener panicked on %s: %v\n", e.Type, r)
		}
	}()
	if m.handle != nil {
		m.handle(e)
	}
}
