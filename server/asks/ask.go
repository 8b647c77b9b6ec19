package asks

import (
	"encoding/json"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/locks"
)

// Ask is a question with the holder's answer.
type Ask struct {
	ID       string       `json:"id"`
	Token    int64        `json:"token"` // of the requested lock
	By       locks.Holder `json:"by"`
	Ticket   string       `json:"ticket,omitempty"` // of the request that asks
	At       int64        `json:"at"`               // milliseconds since 1970
	Accepted bool         `json:"accepted,omitempty"`
	Refused  bool         `json:"refused,omitempty"`
	Reason   string       `json:"reason,omitempty"`
	Busy     bool         `json:"busy,omitempty"`
}

// repeats reports whether the asker of a former question asks again. The connection of its former request has broken.
func (a Ask) repeats(former Ask) bool {
	return a.Ticket != "" && a.Ticket == former.Ticket && a.By.ID == former.By.ID
}

func (a Ask) unanswered() bool { return !a.Accepted && !a.Refused }

func (a Ask) encode() []byte {
	text, err := json.Marshal(a)
	if err != nil {
		panic(err) // strings and numbers
	}
	return text
}

func decode(e kv.Entry) (a Ask, ok bool) {
	err := json.Unmarshal(e.Value, &a)
	return a, err == nil
}
