package rooms

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
)

// between is a store that runs a function after each transaction.
type between struct {
	*kv.Store
	run func()
}

func (b *between) Commit(ctx context.Context, txn kv.Txn) (kv.Result, error) {
	defer b.run()
	return b.Store.Commit(ctx, txn)
}

func (b *between) CommitEach(ctx context.Context, txns []kv.Txn) ([]bool, error) {
	defer b.run()
	return b.Store.CommitEach(ctx, txns)
}

// An instance wakes up while another one removes it as dead. Its sockets are registered afterwards, so their participants stay.
func TestAnInstanceThatWakesUpKeepsItsSockets(t *testing.T) {
	l := startLiving(t)
	wakes := 0
	l.other.config.Store = &between{l.store, func() { require.NoError(t, l.sweeper.beat(t.Context())); wakes++ }}
	w := newSweeper(l.other)
	d := deadPeer{id: l.config.Instance, sign: l.sign.Modified, sockets: []kv.Entry{{Key: socketPrefix + l.ann.token, Modified: l.socket.Modified}}}
	require.NoError(t, w.removeInstance(t.Context(), d, time.Now()))
	require.NotZero(t, wakes)
	assert.Equal(t, map[string]string{l.ann.token: l.config.Instance}, keys(t, l.store, socketPrefix))
	assert.Contains(t, keys(t, l.store, instancePrefix), l.config.Instance)
}

// An instance was silent for too long, for example because it was cut off from the store, and then registers a socket. It lives, so the
// others wait for its next sign again, and the participant stays.
func TestAnInstanceThatRegistersASocketLives(t *testing.T) {
	store := kvtest.Open(t)
	other := start(t, Config{Store: store, Heartbeat: time.Hour, Dead: 2 * time.Hour}) // its next sign is due later
	first := &Rooms{config: other.config, table: &table{instance: "first", queue: queue{
		store: store, now: time.Now, limit: limit, waiting: map[string][]*job{}, conflict: func() {}}}}
	first.config.Instance, first.config.Dead = "first", 20*time.Second
	w := newSweeper(first)
	eventually(t, "its only sign", func() bool { return len(keys(t, store, instancePrefix)) == 1 })
	for _, k := range w.seen.kinds() {
		must(w.seen.readAll(t.Context(), store, k))(t)
	}
	ann := connect(t, other)
	ann.create("Ann")
	ann.info()
	later := time.Now().Add(time.Minute)
	for _, k := range w.seen.kinds() { // as the watches report it
		entries, _, err := store.Range(t.Context(), k.prefix)
		require.NoError(t, err)
		for _, e := range entries {
			w.seen.apply(k, []kv.Change{{Entry: e}}, later)
		}
	}
	require.NoError(t, w.sweep(t.Context(), later.Add(time.Second)))
	assert.Contains(t, keys(t, store, socketPrefix), ann.token)
	assert.Contains(t, keys(t, store, memberPrefix), ann.token)
	require.NoError(t, w.sweep(t.Context(), later.Add(time.Minute)))
	assert.NotContains(t, keys(t, store, socketPrefix), ann.token, "its instance is silent again")
}
