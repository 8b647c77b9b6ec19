//go:build js && wasm

package jsbridge

import (
	"context"
	"errors"
	"time"

	"github.com/hack-pad/safejs"

	"github.com/holdfast-dev/holdfast/remote"
)

// Server is the [remote.Server] over fetch, in the session that the browser has with it.
type Server struct{ url string }

// NewServer returns the server at a URL. Nothing is sent yet.
func NewServer(url string) *Server { return &Server{url: url} }

// Send implements [remote.Server].
func (s *Server) Send(ctx context.Context, r remote.Request) (remote.Reply, error) {
	if ctx.Err() != nil {
		return remote.Reply{}, context.Cause(ctx)
	}
	var body any = safejs.Undefined()
	if r.Fields != nil {
		body = string(JSON(r.Fields))
	} else if r.Body != nil {
		var err error
		if body, err = Uint8Array(r.Body); err != nil {
			return remote.Reply{}, err
		}
	}
	call, err := port.Call("send", r.Method, s.url+r.Path, r.Headers(), body)
	if err != nil {
		return remote.Reply{}, err
	}
	promise, err := call.Get("reply")
	if err != nil {
		return remote.Reply{}, err
	}
	value, err := Await(ctx, promise)
	if err != nil {
		_, _ = call.Call("abort")
		return remote.Reply{}, err
	}
	return readReply(value)
}

// readReply decodes the object that port.js makes of a response.
func readReply(v safejs.Value) (remote.Reply, error) {
	var errs []error
	number := func(name string) int64 {
		field, err := v.Get(name)
		if err != nil || field.IsUndefined() {
			return 0
		}
		n, err := field.Float()
		errs = append(errs, err)
		return int64(n)
	}
	text := func(name string) string {
		field, err := v.Get(name)
		if err != nil || field.IsUndefined() {
			return ""
		}
		s, err := field.String()
		errs = append(errs, err)
		return s
	}
	instant := func(name string) (t time.Time) {
		if ms := number(name); ms != 0 {
			t = time.UnixMilli(ms)
		}
		return t
	}
	tokens, err := readTokens(v)
	errs = append(errs, err)
	mine, err := v.Get("mine")
	if err != nil {
		return remote.Reply{}, err
	}
	own, _ := mine.Truthy()
	reply := remote.Reply{
		Status: int(number("status")), Error: text("error"), Message: text("message"),
		RetryAfter: time.Duration(number("retryAfter")) * time.Millisecond,
		Token:      number("token"), LockedAt: instant("lockedAt"), ExpiresAt: instant("expiresAt"), SavedAt: instant("savedAt"),
		Lease: text("lease"), Slot: int(number("slot")), HolderName: text("holderName"), Mine: own, ETag: text("etag"),
		Save: remote.ParseSave(text("save")), Reason: text("reason"), Ticket: text("ticket"), Tokens: tokens, Paths: decodePaths(v),
	}
	each(v, "holders", func(one safejs.Value) {
		mine, _ := one.Get("is_mine")
		own, _ := mine.Truthy()
		reply.Holders = append(reply.Holders, remote.Held{Paths: decodePaths(one), HolderName: Property(one, "holder_name"), Mine: own})
	})
	if body, err := v.Get("body"); err == nil && !body.IsUndefined() {
		reply.Body, err = Bytes(body)
		errs = append(errs, err)
	}
	return reply, errors.Join(errs...)
}

// readTokens reads the tokens of the leases that a tab left behind.
func readTokens(v safejs.Value) (tokens []int64, err error) {
	list, err := v.Get("tokens")
	if err != nil || list.IsUndefined() {
		return nil, err
	}
	n, err := list.Length()
	for i := 0; i < n && err == nil; i++ {
		var one safejs.Value
		if one, err = list.Index(i); err == nil {
			var token float64
			if token, err = one.Float(); err == nil {
				tokens = append(tokens, int64(token))
			}
		}
	}
	return tokens, err
}
