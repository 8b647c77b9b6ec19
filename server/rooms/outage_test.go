package rooms

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
)

// The store takes no changes for longer than an instance may go without a sign of life, because it is away or full. The
// instance whose sign comes first afterwards does not take the others for dead, and a participant whose client could not
// come back meanwhile gets the grace period.
func TestNobodyIsRemovedForAnOutageOfTheStore(t *testing.T) {
	store := &faulty{Store: kvtest.Open(t)}
	other := start(t, Config{Store: store.Store, Heartbeat: time.Hour, Dead: 2 * time.Hour}) // its next sign is due later
	ann := connect(t, other)
	id := ann.create("Ann")
	ann.info()
	ben := newToken()
	must(other.table.enter(t.Context(), id, participant{Token: ben, Name: "Ben"}, "", false))(t)
	require.NoError(t, other.table.unregister(t.Context(), ben))
	ann.info()

	first := &Rooms{config: other.config, table: &table{instance: "first", queue: queue{
		store: store, now: time.Now, limit: limit, waiting: map[string][]*job{}, conflict: func() {}}}}
	first.config.Instance, first.config.Store, first.config.Dead = "first", store, 20*time.Second
	w := newSweeper(first)
	for _, k := range w.seen.kinds() {
		must(w.seen.readAll(t.Context(), store, k))(t)
	}
	began := time.Now()
	require.NoError(t, w.sweep(t.Context(), began))
	store.fail(func(kv.Txn) error { return kv.ErrFull })
	require.Error(t, w.sweep(t.Context(), began.Add(time.Second)))
	store.fail(nil)
	after := began.Add(time.Minute)
	require.NoError(t, w.sweep(t.Context(), after))
	assert.Contains(t, keys(t, store, socketPrefix), ann.token)
	assert.Contains(t, keys(t, store, memberPrefix), ann.token)
	assert.Contains(t, keys(t, store, memberPrefix), ben)

	require.NoError(t, w.sweep(t.Context(), after.Add(3*time.Second)))
	assert.NotContains(t, keys(t, store, memberPrefix), ben, "its grace period is over")
	require.NoError(t, w.sweep(t.Context(), after.Add(time.Minute)))
	assert.NotContains(t, keys(t, store, socketPrefix), ann.token, "its instance is silent although the store is not")
}
