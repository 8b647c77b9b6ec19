package dav

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/content"
	"github.com/holdfast-dev/holdfast/server/httpapi"
	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/memory"
	"github.com/holdfast-dev/holdfast/server/locks"
	"github.com/holdfast-dev/holdfast/server/metrics"
	"github.com/holdfast-dev/holdfast/server/sessions"
)

// counted runs a function when it counts.
type counted struct {
	prometheus.Counter
	run func()
}

func (c counted) Inc() { c.run() }

// A program gives LOCK up while the lock is granted. Nobody knows the token, so the lock does not stay.
func TestALockForAProgramThatHasGoneDoesNotStay(t *testing.T) {
	m := memory.New()
	t.Cleanup(m.Close)
	store := m.Client(nil)
	t.Cleanup(func() { _ = store.Close() })
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	counts, granted := metrics.New(nil), false
	counts.Grants = counted{counts.Grants, func() { granted = true; leave() }}
	table, err := locks.Open(t.Context(), store, locks.Config{Metrics: counts})
	require.NoError(t, err)
	t.Cleanup(table.Close)
	api, err := httpapi.New(httpapi.Config{Locks: table, WriteLimit: time.Minute})
	require.NoError(t, err)
	_, err = store.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Put("content/c", []byte("{}"))}})
	require.NoError(t, err)
	h := New(Config{API: api, Locks: table, Contents: content.New(content.Config{KV: store, Locks: table}), Store: store, LockTTL: time.Minute})
	r := httptest.NewRequestWithContext(ctx, "LOCK", "/dav/c", strings.NewReader(lockBody))
	_ = h.lock(&call{w: httptest.NewRecorder(), r: r, session: sessions.Session{HolderID: "ann1"}, place: place{"c"}})
	require.True(t, granted)
	lease, _, err := table.At(t.Context(), locks.Document("c"))
	require.NoError(t, err)
	assert.Zero(t, lease.Token)
}
