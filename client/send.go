package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/internal/wait"
	"github.com/holdfast-dev/holdfast/lock"
)

const (
	answerLimit  = 5 * time.Second  // for an answer that needs no waiting
	contentLimit = 60 * time.Second // for one with a content
	maxPause     = 2 * time.Second  // between two attempts
	// announcedLimit is the longest pause that Retry-After can cause. Maintenance may end earlier than announced.
	announcedLimit = 30 * time.Second
)

// call is one request, which may be sent several times.
type call struct {
	method, path string
	session      string
	token        int64
	header       map[string]string
	json         any
	body         []byte
	limit        time.Duration // of one attempt; 0 is answerLimit
}

type reply struct {
	header http.Header
	body   []byte
}

// decode reads the JSON of an answer.
func (r reply) decode(into any) error {
	if err := json.Unmarshal(r.body, into); err != nil {
		return &Error{Code: "unexpected_answer", Message: "the answer cannot be read", Err: err}
	}
	return nil
}

// do sends a request, again and again while there is no answer or one that promises a later success, until the patience or ctx ends.
func (c *Client) do(ctx context.Context, r call) (reply, error) {
	return c.until(ctx, time.Now().Add(c.config.Patience), func() (reply, error) { return c.try(ctx, r) })
}

// until repeats attempts until a time.
func (c *Client) until(ctx context.Context, end time.Time, attempt func() (reply, error)) (reply, error) {
	pause := pauses()
	for {
		answer, err := attempt()
		later, again := mayPass(err)
		if !again {
			return answer, err
		}
		if left := time.Until(end); left <= 0 || wait.For(ctx, min(max(pause(), later), left)) != nil {
			return answer, err
		}
	}
}

func pauses() func() time.Duration {
	return lock.Backoff{InitialDelay: 50 * time.Millisecond, MaxDelay: maxPause}.Delays()
}

// try sends a request once.
func (c *Client) try(ctx context.Context, r call) (reply, error) {
	if ctx.Err() != nil {
		return reply{}, aborted(ctx)
	}
	limit := r.limit
	if limit == 0 {
		limit = answerLimit
	}
	limited, cancel := context.WithTimeoutCause(ctx, limit, errors.New("the server did not answer within "+limit.String()))
	defer cancel()
	request, err := c.request(limited, r)
	if err != nil {
		return reply{}, err
	}
	response, err := c.http.Do(request)
	if err == nil {
		defer response.Body.Close()
		var body []byte
		if body, err = io.ReadAll(response.Body); err == nil {
			return read(response, body)
		}
	}
	return reply{}, c.failed(ctx, limited, err)
}

// failed returns the error of a request without a whole answer: it was given up, its limited context has ended, or err.
func (c *Client) failed(ctx, limited context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return aborted(ctx)
	case limited.Err() != nil:
		err = context.Cause(limited)
	}
	return &Error{Code: ErrUnreachable.Code, Message: "the server at " + c.base + " cannot be reached", Err: err}
}

func (c *Client) request(ctx context.Context, r call) (*http.Request, error) {
	body := r.body
	if r.json != nil {
		var err error
		if body, err = json.Marshal(r.json); err != nil {
			return nil, invalid("", "", "the request cannot be encoded: "+err.Error())
		}
	}
	request, err := http.NewRequestWithContext(ctx, r.method, c.base+r.path, bytes.NewReader(body))
	if err != nil {
		return nil, invalid("", "", "the request cannot be made: "+err.Error())
	}
	bearer := c.config.Key
	if c.config.Token != nil {
		if bearer, err = c.config.Token(ctx); err != nil {
			return nil, &Error{Code: ErrUnauthenticated.Code, Message: "there is no token", Err: err}
		}
	}
	if bearer == "" {
		bearer = r.session
	}
	request.Header.Set("Authorization", "Bearer "+bearer)
	request.Header.Set("Holdfast-Session", r.session)
	if r.json != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if r.token != 0 {
		request.Header.Set("Holdfast-Token", itoa(r.token))
	}
	for name, value := range r.header {
		request.Header.Set(name, value)
	}
	return request, nil
}

// read makes an error of every answer that is no success.
func read(response *http.Response, body []byte) (reply, error) {
	if response.StatusCode/100 == 2 {
		return reply{response.Header, body}, nil
	}
	failed := &Error{Status: response.StatusCode}
	if response.StatusCode == http.StatusNotModified {
		failed.Code, failed.Message = ErrNotModified.Code, "the content is still the same"
		return reply{}, failed
	}
	var says refusal
	if json.Unmarshal(body, &says) != nil || says.Error == "" {
		failed.Code, failed.Message = "unexpected_answer", "the server answered with status "+response.Status
		if to := response.Header.Get("Location"); to != "" {
			failed.Message += ", and names the address " + to
		}
		return reply{}, failed
	}
	failed.Code, failed.Message, failed.Holders = says.Error, says.Message, says.Holders
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil {
		failed.retryAfter = min(time.Duration(seconds)*time.Second, announcedLimit)
	}
	return reply{}, failed
}

// rateLimited is the code for a request that was refused unread.
const rateLimited = "rate_limited"

// mayPass reports whether the same request may succeed later, and how long the server asks to wait for that.
func mayPass(err error) (later time.Duration, ok bool) {
	var e *Error
	if !errors.As(err, &e) {
		return 0, false
	}
	var certificate *tls.CertificateVerificationError
	switch {
	case e.Code == ErrUnreachable.Code:
		return 0, !errors.As(e.Err, &certificate)
	case e.Code == rateLimited:
		return e.retryAfter, true
	}
	switch e.Status {
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return e.retryAfter, true
	}
	return 0, false
}

// named adds the operation and its object to an error.
func named(err error, operation, resource string) error {
	var e *Error
	if errors.As(err, &e) {
		return e.on(operation, resource)
	}
	return err
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
