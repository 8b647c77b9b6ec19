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

// A page that wants to edit posts EditRequest. Each page that edits the document, or one around or below it, answers
// EditAccepted at once and EditGranted when everything is saved; then the asking page may steal the lock. It answers
// EditRefused if it keeps the lock, and EditBusy if another page has asked before. An asking page that receives the
// request of another one answers EditRival; one that gives up posts EditCancelled. A page that is closed or suspended
// while it hands over posts EditLeft once it has released the lock. A page that has become the editor posts Edits.
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
	Document string        // the sender's document, or the document whose lock the sender holds, as lock.Name spells it; "" is the project
	Grace    time.Duration // request: how long the sender waits for an answer
	Remote   bool          // the other page is on another machine: force does not reach it
	Force    bool          // request, rival: it would take the lock from a page that does not answer
	Question int           // request: counts the questions of the round; granted: the question that was answered; 0 if it is not known
	Detail   string        // refused: the reason; accepted, granted: the ID of the lease
	Holder   lock.Holder   // edits
}

// messageQueue queues received messages until they are handled, in order.
type messageQueue struct {
	mu    sync.Mutex
	heard []Message
}

func (q *messageQueue) put(m Message) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.heard = append(q.heard, m)
}

func (q *messageQueue) take() []Message {
	q.mu.Lock()
	defer q.mu.Unlock()
	heard := q.heard
	q.heard = nil
	return heard
}
