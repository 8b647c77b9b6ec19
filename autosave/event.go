package autosave

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/internal/inorder"
	"github.com/holdfast-dev/holdfast/lock"
)

// EventType is the name of an event.
type EventType string

// The events.
const (
	EventPhase    EventType = "autosave:phase"
	EventSaved    EventType = "autosave:saved"
	EventReadonly EventType = "autosave:readonly"
	EventEditable EventType = "autosave:editable"
	EventDraft    EventType = "autosave:draft"
	EventConflict EventType = "autosave:conflict"
	EventPreview  EventType = "autosave:preview"
)

// Event is one event. State is always set; the other fields belong to the types named beside them.
type Event struct {
	Type       EventType
	State      State
	Generation *Generation         // saved; phase: has only Draft and Number, of a draft that was decided about or saved elsewhere
	Reason     lock.ReadonlyReason // readonly
	Err        error               // readonly: the final error, if there is one
	Holder     *lock.Holder        // readonly: the page that edits, if it is known by then
	// Unsaved is the page's text that is not durable: readonly, and editable if Content replaces it. The page offers it
	// to the user, who may use it.
	Unsaved []byte
	// Content is the last saved content, which the page loads before the user may type: editable. It is nil if the page
	// already has the newest; Loaded distinguishes that from an empty document. In a preview, it is the last known
	// content.
	Content []byte
	Loaded  bool
	LeaseID string // editable: the id of the lease under which this page edits
	// Base is the ID of the generation in Content: editable, preview. Text that the user types from now on is based on
	// it. "" means that nothing is saved yet.
	Base     string
	Drafts   []Draft   // editable: drafts that wait for a decision
	Draft    *Draft    // draft: a draft that was stored, or found
	Conflict *Conflict // conflict: Merge was absent, declined or failed
}

// State is the state of AutoSave at one moment.
type State struct {
	_           [0]func() // disallow ==, whose code would be in the Wasm
	Phase       Phase
	ReadOnly    bool      // this page may not edit
	LastSuccess time.Time // zero: this page has saved nothing
	// PendingBytes is the size of the content that is not durable. It is the size of the snapshot if one was taken,
	// otherwise that of the last one, and at least 1. 0 means that everything is durable.
	PendingBytes int64
	LastErr      error // of the last attempt; nil after a success
	RetryCount   int   // failed attempts since the last success
	// QueuedGeneration is the ordinal of the write after the present one, if something has changed since the present
	// one began; otherwise 0.
	QueuedGeneration int64
	Holder           *lock.Holder // the page that edits, while this page may not
	Storage          Storage
	Online           bool // StorageServer: the server answers
	Drafts           int  // number of drafts that wait for a decision, as far as this page knows
}

// events calls the listener of the page, in order, on a goroutine of its own.
type events struct {
	queue    *inorder.Queue
	listener func(Event)
	shown    shown
}

// shown is the state that the last event has shown to the listener.
type shown struct {
	phase    Phase
	readOnly bool
	offline  bool
}

// tell calls the listener with an event, after all earlier events.
func (e *events) tell(event Event) { e.tellThen(event, func() {}) }

// tellThen does the same, and calls then after the listener has returned.
func (e *events) tellThen(event Event, then func()) {
	e.queue.Push(func() {
		if e.listener != nil {
			inorder.Guard(string(event.Type), func() { e.listener(event) })
		}
		then()
	})
}

// handled returns when the listener has handled all events so far, or with the cause when ctx ends.
func (e *events) handled(ctx context.Context) error { return inorder.Flush(ctx, e.queue.Mark()) }
