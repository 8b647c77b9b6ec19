package rooms

import (
	"encoding/json"
	"strconv"
)

// marshal encodes one of this package's own messages, whose types cannot fail to encode.
func marshal(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

func connectedMessage(token string) []byte {
	return marshal(struct {
		Type  string `json:"type"`
		Token string `json:"userToken"`
	}{"connected", token})
}

func createdMessage(id string) []byte {
	return marshal(struct {
		Type string `json:"type"`
		ID   string `json:"roomId"`
	}{"roomCreated", id})
}

func existsMessage(exists bool) []byte {
	return marshal(struct {
		Type   string `json:"type"`
		Exists bool   `json:"isExistTheRoom"`
	}{"isExistTheRoomResult", exists})
}

func (r *refusal) encoded() []byte {
	return marshal(struct {
		Type    string `json:"type"`
		Code    string `json:"error"`
		Message string `json:"message"`
	}{"error", r.code, r.message})
}

// view is a state of a room as its participants see it. The part that all of them see alike is encoded once. A
// participant's message is that part with one piece replaced, so that a message to a thousand participants costs
// little more than writing it.
type view struct {
	revision int64
	room     room
	index    map[string]int // by token
	common   []byte         // the whole message as a client outside the room sees it
	start    []int          // where each participant begins in common
	end      []int
}

func newView(r room, revision int64) *view {
	v := &view{revision: revision, room: r, index: make(map[string]int, len(r.Participants))}
	v.common = append(v.common, `{"type":"roomInfo","revision":`...)
	v.common = strconv.AppendInt(v.common, revision, 10)
	v.common = append(v.common, `,"room":{"id":`...)
	v.common = append(v.common, marshal(r.ID)...)
	v.common = append(v.common, `,"isOpen":`...)
	v.common = strconv.AppendBool(v.common, r.IsOpen)
	v.common = append(v.common, `,"participants":[`...)
	for i, p := range r.Participants {
		if i > 0 {
			v.common = append(v.common, ',')
		}
		v.index[p.Token] = i
		v.start = append(v.start, len(v.common))
		v.common = appendParticipant(v.common, p, false, r.IsOpen)
		v.end = append(v.end, len(v.common))
	}
	v.common = append(v.common, `]}}`...)
	return v
}

// message returns the message for one participant, in parts that nobody may change. ok is false if the token is not in the room.
func (v *view) message(token string) (parts [3][]byte, ok bool) {
	i, ok := v.index[token]
	if !ok {
		return parts, false
	}
	own := appendParticipant(nil, v.room.Participants[i], true, true)
	return [3][]byte{v.common[:v.start[i]], own, v.common[v.end[i]:]}, true
}

// appendParticipant encodes the public data of a participant. It never includes the token, and includes the answer
// only if shown. "hasAnswered" replaces a hidden answer. It is omitted when false, because the server sends large
// rooms often.
func appendParticipant(to []byte, p participant, isMe, shown bool) []byte {
	to = append(to, `{"name":`...)
	to = append(to, marshal(p.Name)...)
	switch {
	case shown:
		to = append(to, `,"answer":`...)
		to = append(to, marshal(p.Answer)...)
	case p.Answer != "":
		to = append(to, `,"answer":"","hasAnswered":true`...)
	default:
		to = append(to, `,"answer":""`...)
	}
	to = append(to, `,"userNumber":`...)
	to = strconv.AppendInt(to, int64(p.Number), 10)
	to = append(to, `,"isMe":`...)
	to = strconv.AppendBool(to, isMe)
	return append(to, '}')
}
