package remote

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"
)

const (
	// bearerLimit is how long a request waits for the page's token. It is below the limit of an answer, so that the
	// caller gets the reason.
	bearerLimit = 4 * time.Second
	// abandonLimit is how long a pending question for a token blocks the next one. The page may make the user sign in
	// meanwhile.
	abandonLimit = time.Minute
	// maxBearer is the maximum length of a token. The server accepts no longer one.
	maxBearer = 8 << 10
)

var (
	errBearerSilent = errors.New("server.token has not settled in time")
	errBearerFailed = errors.New("server.token failed, so the server was not asked")
)

// noBearer is the answer to a request for which the page has no token. It is final, like the answer of a server that
// does not know the user.
var noBearer = Reply{Status: statusUnauthorized, Error: "no_token",
	Message: "server.token must return the text of a bearer token: 1 to 8,192 printable ASCII characters without blanks"}

// bearers adds the token of the page's user to requests. It asks the page for the first token, and for another one
// after the server has refused the last: once, however many requests wait for it.
type bearers struct {
	ask func(context.Context) (string, error) // nil: requests have no token

	mu     sync.Mutex
	last   *bearer
	asking *asking // nil unless a question to the page is pending
}

// bearer is a token that the page has given.
type bearer struct {
	text    string
	renewed bool // the server had refused the previous one
	worked  bool // the server has accepted it
	refused bool
}

// asking is one question to the page.
type asking struct {
	done   chan struct{} // closed when bearer and err are set
	bearer *bearer
	err    error
}

// get returns the last token, or asks the page if there is none or the server has refused it. It returns nil if
// requests have no token.
func (b *bearers) get(ctx context.Context) (*bearer, error) {
	b.mu.Lock()
	if b.ask == nil || b.last != nil && !b.last.refused {
		defer b.mu.Unlock()
		return b.last, nil
	}
	a := b.asking
	if a == nil {
		a = &asking{done: make(chan struct{})}
		b.asking = a
		go b.question(a, b.last != nil)
	}
	b.mu.Unlock()
	limit := time.NewTimer(bearerLimit)
	defer limit.Stop()
	select {
	case <-a.done:
		return a.bearer, a.err
	case <-limit.C:
		return nil, errBearerSilent
	case <-ctx.Done():
		return nil, errors.Join(errBearerSilent, context.Cause(ctx))
	}
}

// question asks the page.
func (b *bearers) question(a *asking, renewed bool) {
	ctx, stop := context.WithTimeoutCause(context.Background(), abandonLimit, errBearerSilent)
	defer stop()
	text, err := b.ask(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asking = nil
	if err != nil {
		a.err = errors.Join(errBearerFailed, err)
	} else {
		a.bearer = &bearer{text: text, renewed: renewed}
		b.last = a.bearer
	}
	close(a.done)
}

// answered records the server's answer to a token. It reports whether the same request may succeed with another token.
func (b *bearers) answered(used *bearer, status int) (again bool) {
	if used == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if status != statusUnauthorized {
		used.worked = true
		return false
	}
	used.refused = true
	return used.worked || !used.renewed || b.last != used
}

// valid reports whether a header can carry the token.
func (b *bearer) valid() bool {
	return b.text != "" && len(b.text) <= maxBearer && !strings.ContainsFunc(b.text, func(c rune) bool { return c <= ' ' || c > '~' })
}

// unsent reports an error by which a request did not reach the server, because the page gave no token.
func unsent(err error) bool {
	return errors.Is(err, errBearerFailed) || errors.Is(err, errBearerSilent)
}

// send sends a request with the user's token, and once more with another token if the server refuses the first. Each of
// the two requests has limit for its answer.
func (r *reach) send(ctx context.Context, limit time.Duration, q Request) (Reply, error) {
	reply, used, err := r.sendOnce(ctx, limit, q)
	if err != nil || !r.bearers.answered(used, reply.Status) {
		return reply, err
	}
	fresh, err := r.bearers.get(ctx)
	if err != nil {
		return Reply{}, err
	}
	if fresh.text == used.text {
		r.bearers.answered(fresh, reply.Status)
		return reply, nil
	}
	reply, used, err = r.sendOnce(ctx, limit, q)
	if err == nil {
		r.bearers.answered(used, reply.Status)
	}
	return reply, err
}

// sendOnce sends a request with the last token, which it returns.
func (r *reach) sendOnce(ctx context.Context, limit time.Duration, q Request) (Reply, *bearer, error) {
	used, err := r.bearers.get(ctx)
	switch {
	case err != nil:
		return Reply{}, nil, err
	case used != nil && !used.valid():
		return noBearer, used, nil
	case used != nil:
		q.Bearer = used.text
	}
	ctx, stop := context.WithTimeoutCause(ctx, limit, errSilent)
	defer stop()
	reply, err := r.server.Send(ctx, q)
	// A request that its caller abandoned says nothing about the server, unless the caller has waited for as long as an
	// answer may take.
	if ctx.Err() == nil || errors.Is(context.Cause(ctx), errSilent) || err == nil {
		r.note(err != nil || absent(reply))
	}
	return reply, used, err
}

// listen listens with the user's token. A browser does not say why a server refuses a socket: the next request renews
// the token.
func (r *reach) listen(ctx context.Context, path string, handle func(Notice)) error {
	q := Request{Method: "GET", Path: path}
	used, err := r.bearers.get(ctx)
	switch {
	case err != nil:
		return err
	case used != nil && !used.valid():
		return errBearerFailed
	case used != nil:
		q.Bearer = used.text
	}
	return r.server.Listen(ctx, q, handle)
}
