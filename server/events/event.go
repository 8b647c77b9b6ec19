// Package events tells everybody in a document what happens to it, each event exactly once and in the order of
// revisions.
//
// An event is written by the transaction that brings it about, to one key for each document, events/<room>; so an event
// exists if and only if what it tells of happened, and its revision is that of the change. The key has the last events
// alone: those before are the key's history, which a watch replays from any revision that the store still remembers.
package events

import (
	"encoding/json"
	"time"

	"github.com/holdfast-dev/holdfast/server/kv"
)

const prefix = "events/"

// Prefix is what the keys of all events begin with; the rest is the document.
const Prefix = prefix

// The types of events.
const (
	Locked   = "document.locked"
	Unlocked = "document.unlocked"
	Updated  = "document.updated"
	State    = "document.state"
	Asked    = "document.asked"
	AskEnded = "document.ask_ended" // it was not passed on
)

// Event is one message of the stream. Which fields it has depends on its type.
type Event struct {
	Type     string `json:"type"`
	RoomID   string `json:"room_id"`
	Revision int64  `json:"revision"`

	IsLocked   *bool  `json:"is_locked,omitempty"` // of a state
	HolderID   string `json:"holder_id,omitempty"`
	HolderName string `json:"holder_name,omitempty"`
	LockedAt   *Time  `json:"locked_at,omitempty"`
	ExpiresAt  *Time  `json:"expires_at,omitempty"`
	Reason     string `json:"reason,omitempty"`
	Token      int64  `json:"token,omitempty"`

	Ask     string `json:"ask_id,omitempty"` // of asked and ask_ended; Token is that of the lock asked for
	AskedAt *Time  `json:"asked_at,omitempty"`

	ETag    string `json:"etag,omitempty"`
	SavedAt *Time  `json:"saved_at,omitempty"`
	// ContentToken is, of a state, the token with which the content was written; Token is the lock's.
	ContentToken int64 `json:"content_token,omitempty"`
}

// Time is a time as the API writes it: RFC 3339 with milliseconds, in UTC.
type Time time.Time

const timeFormat = "2006-01-02T15:04:05.000Z07:00"

// At returns a time for an event, or nil for the zero time.
func At(t time.Time) *Time {
	if t.IsZero() {
		return nil
	}
	return (*Time)(&t)
}

// String formats the time.
func (t Time) String() string { return time.Time(t).UTC().Format(timeFormat) }

// MarshalJSON formats the time.
func (t Time) MarshalJSON() ([]byte, error) { return []byte(`"` + t.String() + `"`), nil }

// UnmarshalJSON reads what MarshalJSON writes.
func (t *Time) UnmarshalJSON(text []byte) error {
	parsed, err := time.Parse(`"`+timeFormat+`"`, string(text))
	*t = Time(parsed)
	return err
}

// Record returns the operation that makes events part of the transaction that brings them about. One transaction holds
// at most one for each room.
func Record(room string, list ...Event) kv.Op {
	for i := range list {
		list[i].RoomID = room
	}
	text, err := json.Marshal(list)
	if err != nil {
		panic(err) // strings, numbers and times
	}
	return kv.Put(prefix+room, text)
}

// Forget returns the operation that removes a document's events: who resumes gets the present state.
func Forget(room string) kv.Op { return kv.Delete(prefix + room) }

// decode reads the events of an entry; something unreadable has none.
func decode(e kv.Entry) []Event {
	var list []Event
	if json.Unmarshal(e.Value, &list) != nil {
		return nil
	}
	for i := range list {
		list[i].Revision = e.Modified
		if list[i].Type == Locked {
			list[i].Token = e.Modified // the revision that granted it, which only the commit knows
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
