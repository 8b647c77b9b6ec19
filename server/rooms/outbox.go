package rooms

import "sync"

const (
	// maxReplies is how many replies may wait to be written. Above it the server reads no more messages from that
	// client.
	maxReplies = 16
	// maxStates is how many states of a room may wait for a slow socket. Above it the outbox keeps only the newest
	// one. Each state is complete, so the client never ends with an outdated one.
	maxStates = 16
)

// outgoing is a message that waits to be written: either bytes, or a state from which the socket's own message is
// made at writing.
type outgoing struct {
	data  []byte
	state *view
}

// outbox holds the messages for a socket, in order. Adding a message never blocks.
type outbox struct {
	mu      sync.Mutex
	waiting []outgoing
	states  int
	wake    chan struct{} // holds an item when a message may be waiting
	space   chan struct{} // holds an item when there may be room for a reply
}

func newOutbox() *outbox {
	return &outbox{wake: make(chan struct{}, 1), space: make(chan struct{}, 1)}
}

// add appends a message.
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

// take removes and returns the first message. ok is false when the outbox is empty.
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

// full reports whether the server must read no further messages because replies wait.
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
