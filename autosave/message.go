package autosave

import (
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/lock"
)

// Channel carries messages between the pages of one project, whichever of its documents they show, as BroadcastChannel does
// between the tabs of one origin: to all others, in no promised time, and to those that are frozen not at all.
type Channel interface {
	Post(Message) error
	// Listen calls handle for every message of another page until stop is called.
	// handle does not block.
	Listen(handle func(Message)) (stop func(), err error)
}

// MessageKind says what a message is for.
type MessageKind string

// A page that wants to edit posts EditRequest. Each page that edits the document, or one around or below it, answers EditAccepted
// at once and, when everything is saved, EditGranted, upon which the asker may steal the lock. It answers EditRefused if it
// keeps the lock, and EditBusy if another page has asked before. An asker
// that hears of another answers EditRival, one that gives up posts EditCancelled. A page that is closed or put to sleep
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

// Message is what pages tell each other.
type Message struct {
	Kind     MessageKind
	Round    string        // ties an answer to its request
	From     string        // OwnerID of the sender
	Document string        // of the sender, as lock.Name spells its path, or what the sender keeps others from editing. "" is the project
	Grace    time.Duration // request: how long an answer is waited for
	Far      bool          // the other page is on another machine: force does not reach there
	Force    bool          // request, rival: it would take it from one who does not answer
	Detail   string        // refused: why; accepted, granted: the ID of the lease
	Holder   lock.Holder   // edits
}

// letters keeps messages that were heard until they are dealt with, in order.
type letters struct {
	mu    sync.Mutex
	heard []Message
}

func (l *letters) put(m Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard = append(l.heard, m)
}

func (l *letters) take() []Message {
	l.mu.Lock()
	defer l.mu.Unlock()
	heard := l.heard
	l.heard = nil
	return heard
}

// hear takes a message and returns at once. A document that is neither around nor below this one is no concern of this page.
func (s *Saver) hear(m Message) {
	if related(m.Document, s.reach()) {
		s.mail.put(m)
		s.rouse()
	}
}

// document is the name of the document.
func (s *Saver) document() string { return lock.Name("", s.config.Lock.Path) }

// reach is the name of the document or, while this page edits, of what it keeps others from editing.
func (s *Saver) reach() string {
	if lease := s.held.Load(); lease != nil {
		return lease.Excludes()
	}
	return s.document()
}

// rouse has the owner of the state look at what is due.
func (s *Saver) rouse() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *Saver) post(m Message) {
	if s.config.Channel != nil {
		m.From, m.Document = s.config.Locks.OwnerID(), s.reach()
		_ = s.config.Channel.Post(m) // who is not heard gets no answer, which is bounded
	}
}
