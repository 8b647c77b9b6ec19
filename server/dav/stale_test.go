package dav

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/content"
	"github.com/holdfast-dev/holdfast/server/httpapi"
	"github.com/holdfast-dev/holdfast/server/kv/memory"
	"github.com/holdfast-dev/holdfast/server/locks"
	"github.com/holdfast-dev/holdfast/server/sessions"
)

// The lock of a program ends just before the transaction that makes its collection. The program is not told that there is
// a collection.
func TestACollectionIsNotMadeWithoutItsLock(t *testing.T) {
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
	p := place{"c"}
	lease, err := table.Acquire(t.Context(), locks.Request{Paths: []locks.Path{p.path()}, Holder: locks.Holder{ID: "ann"}, TTL: time.Hour})
	require.NoError(t, err)
	h := New(Config{API: api, Locks: table, Contents: content.New(content.Config{KV: store, Locks: table}), Store: store, LockTTL: time.Minute})
	g := &right{Handler: h, call: &call{session: sessions.Session{HolderID: "ann"}}, place: p, lease: lease}
	before = func() {
		before = func() {}
		require.NoError(t, table.Release(context.Background(), lease.ID, "ann"))
	}
	require.ErrorIs(t, g.makeDir(t.Context(), p), errIfFailed)
}
