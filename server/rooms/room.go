package rooms

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

const (
	maxParticipants = 1024
	// maxStored keeps a room below etcd's limit for one request (1.5 MiB by default).
	maxStored = 1 << 20
)

// room is the value of rooms/<id>. Its methods return a changed copy and leave the receiver unchanged, so that a
// change can be computed again after a conflict.
type room struct {
	ID           string        `json:"id"`
	Participants []participant `json:"participants"` // in the order of entry
	IsOpen       bool          `json:"isOpen"`
	// NextNumber is the number of the next new participant. A room never reuses a number.
	NextNumber int `json:"nextNumber"`
}

type participant struct {
	Token  string `json:"token"` // a secret; only its own socket receives it
	Name   string `json:"name"`
	Answer string `json:"answer"` // "" means no answer yet
	Number int    `json:"number"`
	// Session identifies the session that opened the socket, "" if unknown; see "Coming back".
	Session string `json:"session,omitempty"`
}

func (r room) index(token string) int {
	return slices.IndexFunc(r.Participants, func(p participant) bool { return p.Token == token })
}

// changed returns a copy whose participants may be modified.
func (r room) changed() room {
	r.Participants = slices.Clone(r.Participants)
	return r
}

// settled returns the room with IsOpen set according to the participants' answers.
func (r room) settled() room {
	r.IsOpen = len(r.Participants) > 0 &&
		!slices.ContainsFunc(r.Participants, func(p participant) bool { return p.Answer == "" })
	return r
}

// enter adds a participant. If the participant is already present, enter only changes its name.
func (r room) enter(token, name, session string) (room, error) {
	r = r.changed()
	if i := r.index(token); i >= 0 {
		r.Participants[i].Name = name
		return r, nil
	}
	if len(r.Participants) >= maxParticipants {
		return r, errFull
	}
	r.Participants = append(r.Participants, participant{Token: token, Name: name, Number: r.NextNumber, Session: session})
	r.NextNumber++
	return r.settled(), nil
}

// resume gives the participant of a former token a new token. The answer and the number stay.
func (r room) resume(former, token, name, session string) (room, error) {
	i := r.index(former)
	if i < 0 || r.index(token) >= 0 {
		return r, errNotInRoom
	}
	r = r.changed()
	p := &r.Participants[i]
	p.Token, p.Name, p.Session = token, name, session
	return r, nil
}

// answer stores the answer of a participant. An empty answer removes it.
func (r room) answer(token, answer string) (room, error) {
	i := r.index(token)
	if i < 0 {
		return r, errNotInRoom
	}
	r = r.changed()
	r.Participants[i].Answer = answer
	return r.settled(), nil
}

// clearAll removes the answers of all participants. Any participant may ask for it to begin the next round.
func (r room) clearAll(token string) (room, error) {
	if r.index(token) < 0 {
		return r, errNotInRoom
	}
	r = r.changed()
	for i := range r.Participants {
		r.Participants[i].Answer = ""
	}
	return r.settled(), nil
}

// leave removes a participant, if present. The room opens if all remaining participants have answered.
func (r room) leave(token string) room {
	r = r.changed()
	r.Participants = slices.DeleteFunc(r.Participants, func(p participant) bool { return p.Token == token })
	return r.settled()
}

// alike returns the tokens of participants with this session and name. Someone with this session and name may come
// back as one of them.
func (r room) alike(session, name string) []string {
	var tokens []string
	for _, p := range r.Participants {
		if session != "" && p.Session == session && p.Name == name {
			tokens = append(tokens, p.Token)
		}
	}
	return tokens
}

// looksLike reports whether participants see no difference between two states of a room.
func (r room) looksLike(other room) bool {
	return r.IsOpen == other.IsOpen && slices.EqualFunc(r.Participants, other.Participants, func(a, b participant) bool {
		return a.Number == b.Number && a.Name == b.Name && a.Answer == b.Answer
	})
}

func (r room) encode() ([]byte, error) {
	data, err := json.Marshal(r)
	if err == nil && len(data) > maxStored {
		err = errFull
	}
	return data, err
}

func decodeRoom(data []byte) (room, error) {
	var r room
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	return r, nil
}

// errUnreadable means that the value of a room is not in this server's format.
var errUnreadable = errors.New("the room cannot be read")

// timeFormat is the format of times in the API's bodies.
const timeFormat = "2006-01-02T15:04:05.000Z07:00"

func encodeTime(t time.Time) []byte { return []byte(t.UTC().Format(timeFormat)) }

func decodeTime(data []byte) (time.Time, error) { return time.Parse(timeFormat, string(data)) }
