// Package events reports every change of a document to its listeners, each event exactly once and in order of
// revisions.
//
// The transaction that makes a change also writes its event to the document's key, events/<document>. So an event exists
// if and only if the change happened, and the event's revision is that of the change. The key contains only the
// latest events. The earlier ones are the key's history, which a watch replays from any revision that the store still
// keeps.
package events

import (
	"encoding/json"
	"time"

	"github.com/holdfast-dev/holdfast/server/kv"
)

const prefix = "events/"

// Prefix is the prefix of all event keys; the rest of a key is the document.
const Prefix = prefix

// The types of events.
const (
	Locked   = "document.locked"
	Unlocked = "document.unlocked"
	Updated  = "document.updated"
	State    = "document.state"
	Asked    = "document.asked"
	AskEnded = "document.ask_ended" // the lock was not handed over
)

// Event is one message of the stream. Its type determines its fields.
type Event struct {
	Type     string `json:"type"`
	Document string `json:"document"`
	RoomID   string `json:"room_id"` // the same, for older clients
	Revision int64  `json:"revision"`

	IsLocked   *bool  `json:"is_locked,omitempty"` // for a state
	HolderID   string `json:"holder_id,omitempty"`
	HolderName string `json:"holder_name,omitempty"`
	LockedAt   *Time  `json:"locked_at,omitempty"`
	ExpiresAt  *Time  `json:"expires_at,omitempty"`
	Reason     string `json:"reason,omitempty"`
	Token      int64  `json:"token,omitempty"`
	// Of a broken lock: the user who broke it, and the reason.
	ByID   string `json:"by_id,omitempty"`
	ByName string `json:"by_name,omitempty"`
	Why    string `json:"why,omitempty"`

	Ask     string `json:"ask_id,omitempty"` // for asked and ask_ended; Token is the token of the requested lock
	AskedAt *Time  `json:"asked_at,omitempty"`

	ETag    string `json:"etag,omitempty"`
	SavedAt *Time  `json:"saved_at,omitempty"`
	// ContentToken is set in a state: the token under which the content was written. Token is the lock's.
	ContentToken int64 `json:"content_token,omitempty"`
}

// Time is a time in the API's format: RFC 3339 with milliseconds, in UTC.
type Time time.Time

const timeFormat = "2006-01-02T15:04:05.000Z07:00"

// At returns a time for an event, or nil for the zero time.
func At(t time.Time) *Time {
	if t.IsZero() {
		return nil
	}
	return (*Time)(&t)
}

func (t Time) String() string { return time.Time(t).UTC().Format(timeFormat) }

func (t Time) MarshalJSON() ([]byte, error) { return []byte(`"` + t.String() + `"`), nil }

func (t *Time) UnmarshalJSON(text []byte) error {
	parsed, err := time.Parse(`"`+timeFormat+`"`, string(text))
	*t = Time(parsed)
	return err
}

// Record returns the operation that adds events to the transaction of their change. A transaction contains at most
// one such operation per document.
func Record(document string, list ...Event) kv.Op {
	for i := range list {
		list[i].Document, list[i].RoomID = document, document
	}
	text, err := json.Marshal(list)
	if err != nil {
		panic(err) // strings, numbers and times
	}
	return kv.Put(prefix+document, text)
}

// Forget returns the operation that removes a document's events. A client that resumes then gets the present state.
func Forget(document string) kv.Op { return kv.Delete(prefix + document) }

// decode reads the events of an entry. An unreadable entry has no events.
func decode(e kv.Entry) []Event {
	var list []Event
	if json.Unmarshal(e.Value, &list) != nil {
		return nil
	}
	for i := range list {
		list[i].Document, list[i].Revision = list[i].RoomID, e.Modified // a former version of the server stored no document
		if list[i].Type == Locked {
			list[i].Token = e.Modified // the revision of the grant, known only at the commit
		}
	}
	return list
}

func encode(e Event) []byte {
	text, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	return text
}
