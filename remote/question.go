package remote

import (
	"context"
	"errors"
	"sync"
	"time"
)

// question asks the holder on another machine for a document. This page's waiting request for the document carries it
// to the server, so that the grant belongs to that request and needs no transfer.
type question struct {
	ctx    context.Context // ends when the page that asks gives up
	grace  time.Duration
	begun  func() // called when the server receives the question
	answer chan answered
}

type answered struct {
	reply Reply
	err   error
}

// questions wait for a request that carries them, by the id of the document.
type questions struct {
	mu   sync.Mutex
	open map[string]*question
	news chan struct{} // closed, and replaced, when a question arrives
}

// acceptLimit is how much time the server gives a holder that has accepted.
const acceptLimit = 15 * time.Second

// errNotWaiting means that no request of this page waits for the document at the server: another tab of this browser
// holds it, or the server cannot be reached.
var errNotWaiting = errors.New("this page does not wait for the document at the server")

// put passes a question to a request and returns the server's answer.
func (q *questions) put(ctx context.Context, document string, grace time.Duration, begun func()) (Reply, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	asked := &question{ctx, grace, begun, make(chan answered, 1)}
	q.mu.Lock()
	if q.open == nil {
		q.open = make(map[string]*question)
	}
	q.open[document] = asked
	if q.news != nil {
		close(q.news)
		q.news = nil
	}
	q.mu.Unlock()
	patience := time.NewTimer(grace)
	defer patience.Stop()
	select {
	case a := <-asked.answer:
		return a.reply, a.err
	case <-patience.C:
	case <-ctx.Done():
	}
	if q.withdraw(document, asked) {
		return Reply{}, errNotWaiting
	}
	select {
	case a := <-asked.answer:
		return a.reply, a.err
	case <-ctx.Done():
		return Reply{}, context.Cause(ctx)
	}
}

// withdraw reports whether no request has taken the question.
func (q *questions) withdraw(document string, asked *question) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.open[document] != asked {
		return false
	}
	delete(q.open, document)
	return true
}

// take returns the question about a document for the caller to carry, or nil, and a channel that is closed when one
// arrives.
func (q *questions) take(document string) (*question, <-chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.news == nil {
		q.news = make(chan struct{})
	}
	asked := q.open[document]
	delete(q.open, document)
	return asked, q.news
}
