package remote

import (
	"context"
	"errors"
	"sync"
	"time"
)

// question asks the holder on another machine for a document. The request of this page that waits for the document carries it
// to the server, so that the grant is that request's: nothing has to be taken from anybody.
type question struct {
	ctx    context.Context // ends when the asker gives up
	grace  time.Duration
	begun  func() // called when the server is asked
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
	news chan struct{} // closed, and replaced, when one comes
}

// acceptLimit is how long the server gives a holder that has accepted.
const acceptLimit = 15 * time.Second

// errNotWaiting means that no request of this page waits for the document at the server: a tab of this browser holds it, or the
// server cannot be reached.
var errNotWaiting = errors.New("this page does not wait for the document at the server")

// put hands a question over and returns what the server says.
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

// withdraw reports whether nobody has taken the question.
func (q *questions) withdraw(document string, asked *question) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.open[document] != asked {
		return false
	}
	delete(q.open, document)
	return true
}

// take returns the question about a document for the caller to carry, or nil, and a channel that is closed when one comes.
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
