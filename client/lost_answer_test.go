package client_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/client"
)

// losing loses the next answer to a request with that method, and then calls lost, if it is not nil.
type losing struct {
	method atomic.Pointer[string]
	lost   func()
}

func (l *losing) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := http.DefaultTransport.RoundTrip(r)
	if m := l.method.Load(); err == nil && m != nil && *m == r.Method && l.method.CompareAndSwap(m, nil) {
		_ = response.Body.Close()
		if l.lost != nil {
			l.lost()
		}
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

// The answer to a write or a deletion is lost, and the lock ends before the client repeats the request. The server refuses that one and has
// carried out the first one, so the client does not say that nothing was done.
func TestChangeWhoseAnswerIsLostWithTheLock(t *testing.T) {
	t.Parallel()
	s, network := startWithUsers(t), &losing{}
	ann, root := s.client(t, client.Config{Key: "ann-key", HTTP: &http.Client{Transport: network}}), s.as(t, "root")
	network.lost = func() { _ = root.Break(t.Context(), "plan", "urgent") }
	put := func(l *client.Lease) error {
		_, err := ann.Put(t.Context(), l.Fence(), "plan", []byte("text"), client.PutOptions{})
		return err
	}
	l := acquire(t, ann, client.Request{Document: "plan"})
	network.next(http.MethodPut)
	err := put(l)
	require.ErrorIs(t, err, client.ErrUnreachable)
	require.ErrorIs(t, err, client.ErrStaleToken)
	content, err := root.Get(t.Context(), "plan", client.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "text", string(content.Data))

	l = acquire(t, ann, client.Request{Document: "plan"})
	network.next(http.MethodDelete)
	err = ann.Delete(t.Context(), l.Fence(), "plan", client.PutOptions{})
	require.ErrorIs(t, err, client.ErrUnreachable)
	require.ErrorIs(t, err, client.ErrStaleToken)
	_, err = root.Get(t.Context(), "plan", client.GetOptions{})
	require.ErrorIs(t, err, client.ErrNotFound)
	require.NotErrorIs(t, put(l), client.ErrUnreachable, "every attempt was answered")
}

// A write has no answer, and all later attempts are refused because of their number. The first one may have been carried out, so the client does
// not say only that the write was refused.
func TestWriteWhoseAnswerIsLostBeforeTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, lost := &network{}, errCut
		n.answer = func(string, map[string]any) (status int, says any, err error) {
			err, lost = lost, nil
			return http.StatusTooManyRequests, refusing("rate_limited"), err
		}
		c := n.client(t)
		put := func() error {
			_, err := c.Put(t.Context(), client.Fence{Session: "s", Token: 7}, "plan", []byte("text"), client.PutOptions{})
			return err
		}
		limited := &client.Error{Code: "rate_limited"}
		err := put()
		require.ErrorIs(t, err, limited)
		require.ErrorIs(t, err, client.ErrUnreachable)
		err = put()
		require.ErrorIs(t, err, limited)
		require.NotErrorIs(t, err, client.ErrUnreachable, "every attempt was answered")
		require.NoError(t, c.Close(t.Context()))
	})
}
