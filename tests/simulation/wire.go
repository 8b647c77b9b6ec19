package simulation

import (
	"context"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/remote"
)

// wire is a tab's [remote.Server].
type wire struct {
	run *run
	tab *tab
	b   *browser
}

// Send implements [remote.Server].
func (s *wire) Send(ctx context.Context, r remote.Request) (remote.Reply, error) {
	if err := s.tab.step(); err != nil {
		return remote.Reply{}, err
	}
	if ctx.Err() != nil {
		return remote.Reply{}, context.Cause(ctx)
	}
	if r.Method == http.MethodDelete && r.Token != 0 {
		s.run.checker.passed(s.tab, r.Token)
	}
	x := s.b.send(s.tab.at.url, r)
	defer close(x.given)
	select {
	case a := <-x.reply:
		if err := s.tab.step(); err != nil {
			return remote.Reply{}, err
		}
		if ctx.Err() != nil {
			return remote.Reply{}, context.Cause(ctx)
		}
		return a.reply, a.err
	case <-ctx.Done():
		if err := s.tab.step(); err != nil {
			return remote.Reply{}, err
		}
		return remote.Reply{}, context.Cause(ctx)
	case <-s.tab.dead:
		return remote.Reply{}, errDead
	}
}

// headers returns the headers that the browser's side sends.
func headers(r remote.Request) map[string]string {
	h := make(map[string]string)
	if r.Token != 0 {
		h["Holdfast-Token"] = strconv.FormatInt(r.Token, 10)
	}
	if r.Save.Order != 0 {
		h["Holdfast-Order"] = strconv.FormatInt(r.Save.Order, 10)
	}
	if r.Save.Draft != "" {
		h["Holdfast-Save"] = r.Save.Draft + "/" + strconv.FormatInt(r.Save.Number, 10)
	}
	return h
}

// body is the common JSON of all answers.
type body struct {
	Error      string  `json:"error"`
	Message    string  `json:"message"`
	Reason     string  `json:"reason"`
	Token      int64   `json:"token"`
	LockedAt   string  `json:"locked_at"`
	ExpiresAt  string  `json:"expires_at"`
	SavedAt    string  `json:"saved_at"`
	ETag       string  `json:"etag"`
	LeaseID    string  `json:"lease_id"`
	Ticket     string  `json:"ticket"`
	Tokens     []int64 `json:"tokens"`
	Slot       int     `json:"slot"`
	HolderName string  `json:"holder_name"`
	IsMyLock   bool    `json:"is_my_lock"`
	IsMine     bool    `json:"is_mine"`
	Holders    []body  `json:"holders"`
}

// read converts a response to a reply, like port.js.
func read(response *http.Response) answer {
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{err: err}
	}
	h := response.Header
	seconds, _ := strconv.Atoi(h.Get("Retry-After"))
	reply := remote.Reply{Status: response.StatusCode, RetryAfter: time.Duration(seconds) * time.Second, ETag: h.Get("ETag"),
		SavedAt: instant(h.Get("Holdfast-Saved-At"))}
	reply.Token, _ = strconv.ParseInt(h.Get("Holdfast-Token"), 10, 64)
	if draft, number, ok := strings.Cut(h.Get("Holdfast-Save"), "/"); ok {
		reply.Save.Draft = draft
		reply.Save.Number, _ = strconv.ParseInt(number, 10, 64)
	}
	if kind, _, _ := mime.ParseMediaType(h.Get("Content-Type")); kind != "application/json" {
		reply.Body = data
		return answer{reply: reply}
	}
	var b body
	if err := json.Unmarshal(data, &b); err != nil {
		return answer{err: err}
	}
	who := b
	if len(b.Holders) > 0 {
		who = b.Holders[0]
	}
	reply.Error, reply.Message, reply.Reason, reply.Token, reply.ETag = b.Error, b.Message, b.Reason, b.Token, b.ETag
	reply.Lease, reply.Slot, reply.HolderName, reply.Mine = b.LeaseID, b.Slot, who.HolderName, who.IsMine || who.IsMyLock
	reply.Ticket, reply.Tokens = b.Ticket, b.Tokens
	reply.LockedAt, reply.ExpiresAt, reply.SavedAt = instant(b.LockedAt), instant(b.ExpiresAt), instant(b.SavedAt)
	return answer{reply: reply}
}

// instant reads a time in whole milliseconds.
func instant(text string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}
	}
	return t.Truncate(time.Millisecond)
}
