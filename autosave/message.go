package autosave

import (
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/lock"
)

// Channel carries messages between the pages of one project, whichever of its documents they show, as BroadcastChannel
// does between the tabs of one origin. A message reaches all other pages at some later time, except those that are
// frozen.
type Channel interface {
	Post(Message) error
	// Listen calls handle for every message of another page until stop is called. handle must not block.
	Listen(handle func(Message)) (stop func(), err error)
}

// MessageKind is the purpose of a message.
type MessageKind string

// The kinds. A page that wants to edit posts EditRequest. Each page that edits the document, or one around or below it, answers EditAccepted at
// once. It answers EditGranted when everything is saved: then the asking page may steal the lock. It answers EditRefused if it keeps the lock,
// and EditBusy if another page has asked before. If it is closed or suspended during the handover, it posts EditLeft once it has released the
// lock. An asking page that receives the request of another page answers EditRival. An asking page that gives up posts EditCancelled. A page
// that has become the editor posts Edits.
const (
	EditRequest   MessageKind = "edit-request"
	EditAccepted  MessageKind = "edit-accepted"
	EditGranted   MessageKind = "edit-granted"
	EditRefused   MessageKind = "edit-refused"
	EditBusy      MessageKind = "edit-busy"
	EditRival     MessageKind = "edit-rival"
	EditCancelled MessageKind = "edit-cancelled"
	EditLeft      MessageKind = "edit-left"
	EditSilent    MessageKind = "edit-silent" // from the server: the holder is on another machine and does not answer
	Edits         MessageKind = "edits"
	DraftResolved MessageKind = "draft-resolved" // a page has decided about a draft
)

// Message is a message between pages.
type Message struct {
	Kind     MessageKind
	Round    string        // connects an answer with its request
	From     string        // OwnerID of the sender
	Document string        // the sender's document or, of a page that edits, the document that its lease keeps others from editing; see lock.Name; "" is the project
	Grace    time.Duration // request: how long the sender waits for an answer
	Remote   bool          // the other page is on another machine: force does not reach it
	Force    bool          // request, rival: the sender takes the lock from a page that does not answer
	Question int           // request: the number of the question in the round; granted: the number of the question that is answered, 0 if it is not known
	Detail   string        // refused: the reason; accepted, granted: the ID of the lease
	Holder   lock.Holder   // edits
}

// messageQueue queues received messages until they are handled, in order.
type messageQueue struct {
	mu       sync.Mutex
	received []Message
}

func (q *messageQueue) put(m Message) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.received = append(q.received, m)
}

func (q *messageQueue) take() []Message {
	q.mu.Lock()
	defer q.mu.Unlock()
	received := q.received
	q.received = nil
	return received
}
