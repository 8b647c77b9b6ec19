package rooms

import (
	"bytes"
	"encoding/json"
	"regexp"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/server/sessions"
)

const (
	maxName   = 24
	maxAnswer = 256
	// maxMessage fits the longest valid message with every character escaped.
	maxMessage = 8 << 10
)

// The types of messages from a client.
const (
	typeCreate = "createRoom"
	typeExists = "isExistTheRoom"
	typeEnter  = "enterTheRoom"
	typeAnswer = "answer"
	typeClear  = "clearAnswer"
)

// message is a message from a client. Every field that its type uses has been checked.
type message struct {
	Type     string `json:"type"`
	Token    string `json:"userToken"`
	Name     string `json:"userName"`
	RoomID   string `json:"roomId"`
	Answer   text   `json:"answer"`
	Previous string `json:"previousToken"` // the former token of a participant that comes back
	Everyone bool   `json:"everyone"`      // clearAnswer: clear the answers of all participants
	Create   bool   `json:"create"`        // enterTheRoom: create the room if it does not exist
}

// text is a string that may be empty but not missing.
type text struct {
	value string
	given bool
}

func (t *text) UnmarshalJSON(data []byte) error {
	if bytes.Equal(data, []byte("null")) {
		return nil
	}
	t.given = true
	return json.Unmarshal(data, &t.value)
}

var roomID = regexp.MustCompile(`^[A-Za-z0-9._~-]{1,128}$`)

// decode reads a message that came over the socket with this token. Every error is a *refusal. It ignores fields that
// the type does not use.
func decode(data []byte, token string) (message, *refusal) {
	var m message
	switch {
	case len(data) > maxMessage:
		return m, errTooLarge
	case !utf8.Valid(data) || json.Unmarshal(data, &m) != nil || m.Type == "":
		return m, errMalformed
	}
	return m, m.check(token)
}

func (m message) check(token string) *refusal {
	switch m.Type {
	case typeCreate:
		return first(m.checkToken(token), m.checkName())
	case typeExists:
		return m.checkRoom()
	case typeEnter:
		return first(m.checkToken(token), m.checkName(), m.checkRoom(), m.checkPrevious())
	case typeAnswer:
		return first(m.checkToken(token), m.checkRoom(), m.checkAnswer())
	case typeClear:
		return first(m.checkToken(token), m.checkRoom())
	}
	return errUnknownType
}

func first(refusals ...*refusal) *refusal {
	for _, r := range refusals {
		if r != nil {
			return r
		}
	}
	return nil
}

func (m message) checkToken(token string) *refusal {
	switch m.Token {
	case "":
		return invalid("userToken is missing.")
	case token:
		return nil
	}
	return errForeignToken
}

func (m message) checkName() *refusal {
	switch n := utf8.RuneCountInString(m.Name); {
	case n < 1 || n > maxName:
		return invalid("userName must have 1 to 24 characters.")
	case !sessions.Readable(m.Name):
		return invalid("userName must be readable.")
	}
	return nil
}

func (m message) checkRoom() *refusal {
	if !roomID.MatchString(m.RoomID) {
		return invalid("roomId must be 1 to 128 characters of A-Z a-z 0-9 . _ ~ -.")
	}
	return nil
}

func (m message) checkAnswer() *refusal {
	switch {
	case !m.Answer.given:
		return invalid("answer is missing.")
	case utf8.RuneCountInString(m.Answer.value) > maxAnswer:
		return invalid("answer must have at most 256 characters.")
	}
	return nil
}

func (m message) checkPrevious() *refusal {
	if m.Previous != "" && !validToken(m.Previous) {
		return invalid("previousToken is not a token.")
	}
	return nil
}
