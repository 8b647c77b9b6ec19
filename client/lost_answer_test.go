package client_test

import (
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/client"
)

// losing loses the next answer to a request with that method.
type losing struct{ method atomic.Pointer[string] }

func (l *losing) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := http.DefaultTransport.RoundTrip(r)
	if m := l.method.Load(); err == nil && m != nil && *m == r.Method && l.method.CompareAndSwap(m, nil) {
		_ = response.Body.Close()
		return nil, errCut
	}
	return response, err
}

func (l *losing) next(method string) { l.method.Store(&method) }

// The answer to the break of a lease is lost. The client repeats the request, and the lease is gone by then: it was broken.
func TestBreakWhoseAnswerIsLost(t *testing.T) {
	t.Parallel()
	s, network := startWithUsers(t), &losing{}
	ann, root := s.as(t, "ann"), s.client(t, client.Config{Key: "root-key", HTTP: &http.Client{Transport: network}})
	l := acquire(t, ann, client.Request{Paths: [][]string{{"a"}}})
	network.next(http.MethodPost)
	require.NoError(t, root.BreakLease(t.Context(), l.ID(), "urgent"))
	require.ErrorIs(t, l.Renew(t.Context()), client.ErrLost)
	require.ErrorIs(t, l.Release(t.Context()), client.ErrLost)
	require.ErrorIs(t, root.BreakLease(t.Context(), l.ID(), "again"), client.ErrLockNotFound)
}
