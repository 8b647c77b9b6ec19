package httpapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/server/locks"
	"github.com/holdfast-dev/holdfast/server/sessions"
)

// lockBody is the body of a request for a document's lock; it may be absent.
type lockBody struct {
	HolderName *string `json:"holder_name"`
}

// pathsBody is the body of a request for locks on paths.
type pathsBody struct {
	Paths      []locks.Path `json:"paths"`
	Mode       locks.Mode   `json:"mode"`
	Slots      *int         `json:"slots"`
	TTL        *int64       `json:"ttl_ms"`
	Wait       *int64       `json:"wait_ms"`
	HolderName *string      `json:"holder_name"`
	Fresh      bool         `json:"fresh"`
	Ticket     string       `json:"ticket"`
	Replace    *[]int64     `json:"replace"`
	PassOn     bool         `json:"pass_on"`
	Browser    string       `json:"browser"`
}

// readBody reads a JSON object into body. An empty body is allowed if mayBeEmpty is set.
func (a *API) readBody(w http.ResponseWriter, r *http.Request, body any, mayBeEmpty bool) error {
	if mayBeEmpty && r.ContentLength == 0 {
		return nil
	}
	text, err := a.ReadSmall(w, r)
	if err != nil {
		return err
	}
	if len(text) == 0 && mayBeEmpty {
		return nil
	}
	if err := json.Unmarshal(text, body); err != nil {
		return invalid("The body is not the JSON object that this call takes.")
	}
	return nil
}

// bodyError distinguishes a body that is too large from one that did not arrive.
func bodyError(err error) error {
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return errTooLarge
	}
	return invalid("The body did not arrive whole.")
}

// wait reads wait_ms of the query.
func (a *API) wait(query url.Values) (time.Duration, error) {
	text := query.Get("wait_ms")
	if text == "" {
		return 0, nil
	}
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, invalid("wait_ms is a number of milliseconds.")
	}
	return a.checkWait(ms)
}

func (a *API) checkWait(ms int64) (time.Duration, error) {
	if ms < 0 || ms > a.MaxWait.Milliseconds() {
		return 0, invalid("wait_ms is from 0 to " + millis(a.MaxWait) + ".")
	}
	return time.Duration(ms) * time.Millisecond, nil
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// holder returns the client that asks, with the name from the proxy, the body or the query, if any.
func holder(s sessions.Session, fromBody *string, query url.Values) (locks.Holder, error) {
	h := locks.Holder{ID: s.HolderID, Name: "Guest " + s.HolderID[:4]}
	switch {
	case s.Name != "":
		h.Name = s.Name
		return h, nil
	case fromBody != nil:
		h.Name = *fromBody
	case query.Has("holder_name"):
		h.Name = query.Get("holder_name")
	}
	if err := sessions.CheckName(h.Name); err != nil {
		return h, invalid("holder_name has 1 to 64 printable characters.")
	}
	return h, nil
}

const (
	minTTL = 100 * time.Millisecond
	maxTTL = time.Hour
)

func (b pathsBody) request(a *API) (locks.Request, error) {
	r := locks.Request{Paths: b.Paths, Mode: b.Mode, Slots: 1, TTL: a.LockTTL, Fresh: b.Fresh, Ticket: b.Ticket, Browser: b.Browser}
	if b.Replace != nil {
		r.Exact, r.Replace, r.PassOn = true, *b.Replace, b.PassOn
	}
	if b.Slots != nil {
		if *b.Slots < 1 {
			return r, invalid("slots is 1 or more.")
		}
		r.Slots = *b.Slots
	}
	if b.TTL != nil {
		if *b.TTL < minTTL.Milliseconds() || *b.TTL > maxTTL.Milliseconds() {
			return r, invalid("ttl_ms is from 100 to 3600000.")
		}
		r.TTL = time.Duration(*b.TTL) * time.Millisecond
	}
	if b.Wait != nil {
		var err error
		if r.Wait, err = a.checkWait(*b.Wait); err != nil {
			return r, err
		}
	}
	return r, nil
}
