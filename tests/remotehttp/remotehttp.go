// Package remotehttp reads and writes the messages of [remote.Server] over net/http. It does for Go programs what
// jsbridge/port.js does for pages.
package remotehttp

import (
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/remote"
)

// replyBody has the fields of all replies in JSON that [remote.Reply] has.
type replyBody struct {
	Error     string  `json:"error"`
	Message   string  `json:"message"`
	Reason    string  `json:"reason"`
	Token     int64   `json:"token"`
	LockedAt  instant `json:"locked_at"`
	ExpiresAt instant `json:"expires_at"`
	SavedAt   instant `json:"saved_at"`
	ETag      string  `json:"etag"`
	LeaseID   string  `json:"lease_id"`
	Slot      int     `json:"slot"`
	Ticket    string  `json:"ticket"`
	Tokens    []int64 `json:"tokens"`
	holder
	Holders []holder `json:"holders"`
}

// holder is the holder of a lock in a reply.
type holder struct {
	HolderName string `json:"holder_name"`
	IsMyLock   bool   `json:"is_my_lock"` // of a document
	IsMine     bool   `json:"is_mine"`    // in a list

	Paths [][]string `json:"paths"`
}

// notice has the fields of a [remote.Notice].
type notice struct {
	Type       string `json:"type"`
	Revision   int64  `json:"revision"`
	Token      int64  `json:"token"`
	Ask        string `json:"ask_id"`
	HolderName string `json:"holder_name"`
}

// instant is a time in whole milliseconds. A text that is no time is the zero time.
type instant struct{ time.Time }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (t *instant) UnmarshalText(text []byte) error {
	t.Time = parse(string(text))
	return nil
}

func parse(text string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}
	}
	return t.Truncate(time.Millisecond)
}

// SetHeaders adds the headers of a request.
func SetHeaders(h http.Header, r remote.Request) {
	for name, value := range r.Headers() {
		h.Set(name, value.(string))
	}
}

// Body returns the body of a request; nil if it has none.
func Body(r remote.Request) ([]byte, error) {
	if r.Fields != nil {
		return json.Marshal(r.Fields)
	}
	return r.Body, nil
}

// ReadReply reads a response. It fails if the response ends early, or is JSON that it cannot read.
func ReadReply(response *http.Response) (remote.Reply, error) {
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return remote.Reply{}, err
	}
	h := response.Header
	seconds, _ := strconv.Atoi(h.Get("Retry-After"))
	reply := remote.Reply{Status: response.StatusCode, RetryAfter: time.Duration(seconds) * time.Second, ETag: h.Get("ETag"),
		SavedAt: parse(h.Get(remote.HeaderSavedAt)), Save: remote.ParseSave(h.Get(remote.HeaderSave))}
	reply.Token, _ = strconv.ParseInt(h.Get(remote.HeaderToken), 10, 64)
	if kind, _, _ := mime.ParseMediaType(h.Get("Content-Type")); kind != "application/json" {
		reply.Body = data
		return reply, nil
	}
	var b replyBody
	if err := json.Unmarshal(data, &b); err != nil {
		return remote.Reply{}, err
	}
	first := b.holder
	if len(b.Holders) > 0 {
		first = b.Holders[0]
	}
	reply.Error, reply.Message, reply.Reason, reply.Token, reply.ETag = b.Error, b.Message, b.Reason, b.Token, b.ETag
	reply.Lease, reply.Slot, reply.HolderName, reply.Mine = b.LeaseID, b.Slot, first.HolderName, first.IsMine || first.IsMyLock
	reply.Ticket, reply.Tokens, reply.Paths = b.Ticket, b.Tokens, b.Paths
	for _, one := range b.Holders {
		reply.Holders = append(reply.Holders, remote.Held{Paths: one.Paths, HolderName: one.HolderName, Mine: one.IsMine})
	}
	reply.LockedAt, reply.ExpiresAt, reply.SavedAt = b.LockedAt.Time, b.ExpiresAt.Time, b.SavedAt.Time
	return reply, nil
}

// ReadNotice reads an event of a document.
func ReadNotice(text []byte) (remote.Notice, error) {
	var n notice
	err := json.Unmarshal(text, &n)
	return remote.Notice(n), err
}
