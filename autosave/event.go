package autosave

import (
	"time"

	"github.com/holdfast-dev/holdfast/lock"
)

// EventType names what happened.
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

// Event is one thing that happened. State is always set; the other fields belong to the
// types named beside them.
type Event struct {
	Type       EventType
	State      State
	Generation *Generation         // saved
	Reason     lock.ReadonlyReason // readonly
	Err        error               // readonly: the final error, where there was one
	Holder     *lock.Holder        // readonly: who edits, where that is known by then
	// Unsaved is what the page had that is not durable: readonly, and editable where
	// Content takes its place. It is offered; to use it is up to the person.
	Unsaved []byte
	// Content is what was saved last by whoever held it, for the page to load before it
	// lets anyone type: editable. Nil where the page has the newest already; Loaded
	// tells that from an empty document. In a preview, the last content that is known.
	Content []byte
	Loaded  bool
	LeaseID string // editable: of the lease under which this page edits
	// Base is the ID of the generation in Content: editable, preview. Text that the page types from here on
	// is based on it. "" means that nothing is saved yet.
	Base     string
	Drafts   []Draft   // editable: drafts that wait for a decision
	Draft    *Draft    // draft: one was stored, or found
	Conflict *Conflict // conflict: Merge was absent, declined or failed
}

// State is what AutoSave is doing at one moment.
type State struct {
	Phase       Phase
	ReadOnly    bool      // this page may not edit
	LastSuccess time.Time // zero: nothing was saved by this page
	// PendingBytes is the size of what is not durable: of the snapshot where one was
	// taken, else of the last one, at least 1. 0 means everything is durable.
	PendingBytes int64
	LastErr      error // of the last attempt, nil after a success
	RetryCount   int   // failed attempts since the last success
	// QueuedGeneration is the ordinal of the write that follows the present one, where
	// something has changed since that began; else 0.
	QueuedGeneration int64
	Holder           *lock.Holder // who edits, while this page may not
	Storage          Storage
	Online           bool // StorageServer: the server answers
	Drafts           int  // how many drafts wait for a decision, as far as this page knows
}
