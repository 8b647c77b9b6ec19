package dav

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/blobs"
	"github.com/holdfast-dev/holdfast/server/content"
	"github.com/holdfast-dev/holdfast/server/httpapi"
	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/memory"
	"github.com/holdfast-dev/holdfast/server/locks"
	"github.com/holdfast-dev/holdfast/server/sessions"
)

// interruptedStore is a store with two clients. A test makes a change just before a transaction of the first one.
type interruptedStore struct {
	t             *testing.T
	memory        *memory.Store
	before        func() // runs once, before the next transaction of interrupted; nil for none
	interrupted   *kv.Store
	uninterrupted *kv.Store
	table         *locks.Table
	api           *httpapi.API
	blobs         *blobs.Files
}

func newInterruptedStore(t *testing.T) *interruptedStore {
	m := memory.New()
	s := &interruptedStore{t: t, memory: m}
	t.Cleanup(m.Close)
	s.interrupted = m.Client(func(_ context.Context, request string) (before, after error) {
		if run := s.before; request == "txn" && run != nil {
			s.before = nil
			run()
		}
		return nil, nil
	})
	t.Cleanup(func() { _ = s.interrupted.Close() })
	s.uninterrupted = m.Client(nil)
	t.Cleanup(func() { _ = s.uninterrupted.Close() })
	var err error
	s.table, err = locks.Open(t.Context(), s.uninterrupted, locks.Config{})
	require.NoError(t, err)
	t.Cleanup(s.table.Close)
	s.api, err = httpapi.New(httpapi.Config{Locks: s.table, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	s.blobs, err = blobs.OpenFiles(t.TempDir())
	require.NoError(t, err)
	return s
}

// handler returns a handler that uses one client for contents and one for the rest.
func (s *interruptedStore) handler(contents, rest *kv.Store) *Handler {
	return New(Config{API: s.api, Locks: s.table, Store: rest, LockTTL: time.Minute,
		Contents: content.New(content.Config{KV: contents, Locks: s.table, Blobs: s.blobs, Forget: Forget})})
}

// right returns the right of a program to change a place. All rights to one place are under the same lock.
func (s *interruptedStore) right(h *Handler, p place) *right {
	lease, err := s.table.Acquire(s.t.Context(), locks.Request{Paths: []locks.Path{p.path()}, Holder: locks.Holder{ID: "ann"}, TTL: time.Hour, Again: true})
	require.NoError(s.t, err)
	c := &call{r: httptest.NewRequestWithContext(s.t.Context(), "MOVE", p.href(false), nil), session: sessions.Session{HolderID: "ann"}}
	return &right{Handler: h, call: c, place: p, lease: lease}
}

// write writes a document at the place of the right.
func write(t *testing.T, g *right, text string) {
	_, err := g.Contents.WriteUnder(t.Context(), g.place.id(), g.content(), content.Save{}, nil, []byte(text))
	require.NoError(t, err)
}

// red is a property that the tests set.
var red = property{Name: "color", Value: "red"}
