package remoteserver

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/holdfast-dev/holdfast/remote"
)

// browser is a page's connection to a real server, like port.js in a browser.
type browser struct {
	url, origin string
	client      *http.Client // with the cookies of the session
}

// answer is the common JSON of all answers.
type answer struct {
	Error      string    `json:"error"`
	Message    string    `json:"message"`
	Reason     string    `json:"reason"`
	Token      int64     `json:"token"`
	LockedAt   time.Time `json:"locked_at"`
	ExpiresAt  time.Time `json:"expires_at"`
	SavedAt    time.Time `json:"saved_at"`
	ETag       string    `json:"etag"`
	Lease      string    `json:"lease_id"`
	Slot       int       `json:"slot"`
	Ticket     string    `json:"ticket"`
	Tokens     []int64   `json:"tokens"`
	HolderName string    `json:"holder_name"`
	IsMyLock   bool      `json:"is_my_lock"`
	Holders    []struct {
		HolderName string `json:"holder_name"`
		IsMine     bool   `json:"is_mine"`
	} `json:"holders"`
}

// Send implements [remote.Server].
func (b browser) Send(ctx context.Context, r remote.Request) (remote.Reply, error) {
	body := io.Reader(bytes.NewReader(r.Body))
	if r.Fields != nil {
		text, err := json.Marshal(r.Fields)
		if err != nil {
			return remote.Reply{}, err
		}
		body = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, r.Method, b.url+strings.ReplaceAll(r.Path, " ", "%20"), body)
	if err != nil {
		return remote.Reply{}, err
	}
	b.headers(request.Header, r)
	response, err := b.client.Do(request)
	if err != nil {
		return remote.Reply{}, err
	}
	defer response.Body.Close()
	return read(response)
}

func (b browser) headers(h http.Header, r remote.Request) {
	if b.origin != "" {
		h.Set("Origin", b.origin)
	}
	if r.Token != 0 {
		h.Set("Holdfast-Token", strconv.FormatInt(r.Token, 10))
	}
	if r.Save.Draft != "" {
		h.Set("Holdfast-Save", r.Save.Draft+"/"+strconv.FormatInt(r.Save.Number, 10))
	}
	if r.Save.Order != 0 {
		h.Set("Holdfast-Order", strconv.FormatInt(r.Save.Order, 10))
	}
}

func read(response *http.Response) (remote.Reply, error) {
	text, err := io.ReadAll(response.Body)
	reply := remote.Reply{Status: response.StatusCode, ETag: response.Header.Get("ETag")}
	reply.Token, _ = strconv.ParseInt(response.Header.Get("Holdfast-Token"), 10, 64)
	draft, number, _ := strings.Cut(response.Header.Get("Holdfast-Save"), "/")
	reply.Save.Draft = draft
	reply.Save.Number, _ = strconv.ParseInt(number, 10, 64)
	if !strings.HasPrefix(response.Header.Get("Content-Type"), "application/json") {
		reply.Body = text
		return reply, err
	}
	var a answer
	if err == nil {
		err = json.Unmarshal(text, &a)
	}
	reply.Error, reply.Message, reply.Reason, reply.Token, reply.ETag = a.Error, a.Message, a.Reason, a.Token, a.ETag
	reply.LockedAt, reply.ExpiresAt, reply.SavedAt = a.LockedAt, a.ExpiresAt, a.SavedAt
	reply.Lease, reply.Slot, reply.Ticket, reply.Tokens = a.Lease, a.Slot, a.Ticket, a.Tokens
	reply.HolderName, reply.Mine = a.HolderName, a.IsMyLock
	if len(a.Holders) > 0 {
		reply.HolderName, reply.Mine = a.Holders[0].HolderName, a.Holders[0].IsMine
	}
	return reply, err
}

// Listen implements [remote.Server].
func (b browser) Listen(ctx context.Context, r remote.Request, handle func(remote.Notice)) error {
	header := http.Header{}
	b.headers(header, remote.Request{})
	conn, _, err := websocket.Dial(ctx, b.url+r.Path, &websocket.DialOptions{HTTPClient: b.client, HTTPHeader: header})
	if err != nil {
		return err
	}
	defer func() { _ = conn.CloseNow() }()
	for {
		_, text, err := conn.Read(ctx)
		if err != nil {
			return err
		}
		var n struct {
			Type       string `json:"type"`
			Revision   int64  `json:"revision"`
			Token      int64  `json:"token"`
			Ask        string `json:"ask_id"`
			HolderName string `json:"holder_name"`
		}
		if err := json.Unmarshal(text, &n); err != nil {
			return err
		}
		handle(remote.Notice{Type: n.Type, Revision: n.Revision, Token: n.Token, Ask: n.Ask, HolderName: n.HolderName})
	}
}
