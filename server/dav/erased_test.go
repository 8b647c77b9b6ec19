package dav

import (
	"context"
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

// An administrator deletes a document just before the transaction that stores properties of it. The properties do not stay for
// another document of this name.
func TestADeletedDocumentGetsNoProperties(t *testing.T) {
	m := memory.New()
	before := func() {}
	store := m.Client(func(_ context.Context, request string) (error, error) {
		if request == "txn" {
			before()
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
	contents := content.New(content.Config{KV: other, Locks: table, Blobs: files, Forget: Forget})
	p := place{"c"}
	lease, err := table.Acquire(t.Context(), locks.Request{Paths: []locks.Path{p.path()}, Holder: locks.Holder{ID: "ann"}, TTL: time.Hour})
	require.NoError(t, err)
	h := New(Config{API: api, Locks: table, Contents: contents, Store: store, LockTTL: time.Minute})
	g := &right{Handler: h, call: &call{session: sessions.Session{HolderID: "ann"}}, place: p, lease: lease}
	_, err = contents.WriteUnder(t.Context(), p.id(), g.content(), content.Save{}, nil, []byte("text"))
	require.NoError(t, err)

	n := node{place: p, kind: file}
	before = func() {
		before = func() {}
		require.NoError(t, contents.Erase(context.Background(), p.id(), nil))
	}
	require.ErrorIs(t, h.patchUnder(t.Context(), g, n, []update{{property: property{Name: "color", Value: "red"}}}), content.ErrNotFound)
	e, _, err := store.Get(t.Context(), n.propsKey())
	require.NoError(t, err)
	assert.False(t, e.Found())
}
