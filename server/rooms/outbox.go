package rooms

import "sync"

const (
	// maxReplies is how many replies may wait to be written: whoever does not read them is not read either.
	maxReplies = 16
	// maxStates is how many states of its room may wait for a socket that does not keep up. After that it
	// is told the newest only: each says everything, so that no one is told something that is no longer so.
	maxStates = 16
)

// outgoing is a message that waits to be written: bytes, or a state of which the socket's own message is
// made when it is written.
type outgoing struct {
	data  []byte
	state *view
}

// outbox holds what a socket is still to be told, in order. It never makes the one who tells wait.
type outbox struct {
	mu      sync.Mutex
	waiting []outgoing
	states  int
	wake    chan struct{} // holds an item when there may be something
	space   chan struct{} // holds an item when there may be room for a reply
}

func newOutbox() *outbox {
	return &outbox{wake: make(chan struct{}, 1), space: make(chan struct{}, 1)}
}

// add puts a message behind the others.
func (o *outbox) add(message outgoing) {
	o.mu.Lock()
	if message.state != nil {
		if o.states == maxStates {
			o.dropStates()
		}
		o.states++
	}
	o.waiting = append(o.waiting, message)
	o.mu.Unlock()
	signal(o.wake)
}

func (o *outbox) dropStates() {
	kept := o.waiting[:0]
	for _, message := range o.waiting {
		if message.state == nil {
			kept = append(kept, message)
		}
	}
	clear(o.waiting[len(kept):])
	o.waiting = kept
	o.states = 0
}

// take returns the message at the head; ok is false when there is none.
func (o *outbox) take() (message outgoing, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.waiting) == 0 {
		return outgoing{}, false
	}
	message = o.waiting[0]
	o.waiting[0] = outgoing{}
	o.waiting = o.waiting[1:]
	if message.state != nil {
		o.states--
	}
	signal(o.space)
	return message, true
}

// full reports whether replies should wait.
func (o *outbox) full() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.waiting)-o.states >= maxReplies
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
