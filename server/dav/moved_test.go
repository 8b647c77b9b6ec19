package dav

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/blobs"
	"github.com/holdfast-dev/holdfast/server/content"
	"github.com/holdfast-dev/holdfast/server/httpapi"
	"github.com/holdfast-dev/holdfast/server/kv/memory"
	"github.com/holdfast-dev/holdfast/server/locks"
	"github.com/holdfast-dev/holdfast/server/sessions"
)

// A program moves a document and sets a property of it in parallel, under one lock. The property is stored while the move has
// read the properties and not moved yet. It moves too.
func TestAPropertySetDuringAMoveMovesToo(t *testing.T) {
	m := memory.New()
	t.Cleanup(m.Close)
	var before func()
	store := m.Client(func(_ context.Context, request string) (error, error) {
		if request == "txn" && before != nil {
			once := before
			before = nil
			once()
		}
		return nil, nil
	})
	t.Cleanup(func() { _ = store.Close() })
	other := m.Client(func(context.Context, string) (before, after error) { return nil, nil })
	t.Cleanup(func() { _ = other.Close() })
	table, err := locks.Open(t.Context(), other, locks.Config{})
	require.NoError(t, err)
	t.Cleanup(table.Close)
	api, err := httpapi.New(httpapi.Config{Locks: table})
	require.NoError(t, err)
	files, err := blobs.OpenFiles(t.TempDir())
	require.NoError(t, err)
	moving := New(Config{API: api, Locks: table, Store: other, LockTTL: time.Minute,
		Contents: content.New(content.Config{KV: store, Locks: table, Blobs: files, Forget: Forget})})
	setting := New(Config{API: api, Locks: table, Store: other, LockTTL: time.Minute,
		Contents: content.New(content.Config{KV: other, Locks: table, Blobs: files, Forget: Forget})})
	c := &call{r: httptest.NewRequestWithContext(t.Context(), "MOVE", "/dav/from", nil), session: sessions.Session{HolderID: "ann"}}
	right := func(h *Handler, p place) *right {
		lease, err := table.Acquire(t.Context(), locks.Request{Paths: []locks.Path{p.path()}, Holder: locks.Holder{ID: "ann"}, TTL: time.Hour, Again: true})
		require.NoError(t, err)
		return &right{Handler: h, call: c, place: p, lease: lease}
	}
	from, to := node{place: place{"from"}, kind: file}, node{place: place{"to"}, kind: file}
	_, err = setting.Contents.WriteUnder(t.Context(), from.id(), right(setting, from.place).content(), content.Save{}, nil, []byte("text"))
	require.NoError(t, err)
	patch := func() error {
		return setting.patchUnder(t.Context(), right(setting, from.place), from, []update{{property: property{Name: "color", Value: "red"}}})
	}

	before = func() { require.NoError(t, patch()) }
	x := &transfer{call: c, from: from, to: to, move: true, source: right(moving, from.place), target: right(moving, to.place)}
	require.NoError(t, moving.moveNode(x, from, to, nil))
	props, err := moving.readProps(t.Context(), []node{to})
	require.NoError(t, err)
	assert.Equal(t, []property{{Name: "color", Value: "red"}}, props[0])
	require.ErrorIs(t, patch(), content.ErrNotFound, "the document has gone")
}
