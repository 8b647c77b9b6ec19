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
	store := kvtest.Open(t)
	a := start(t, Config{Store: store, Heartbeat: time.Hour, Dead: 2 * time.Hour})
	ann := connect(t, a)
	eventually(t, "its sign of life", func() bool { return len(keys(t, store, instancePrefix)) == 1 })
	sign, _, err := store.Get(t.Context(), instancePrefix+a.config.Instance)
	require.NoError(t, err)
	socket, _, err := store.Get(t.Context(), socketPrefix+ann.token)
	require.NoError(t, err)

	b := &Rooms{config: a.config, table: a.table}
	b.config.Instance = "b"
	wakes := 0
	b.config.Store = &between{store, func() { require.NoError(t, a.sweeper.beat(t.Context())); wakes++ }}
	w := newSweeper(b)
	d := deadPeer{id: a.config.Instance, sign: sign.Modified, sockets: []kv.Entry{{Key: socketPrefix + ann.token, Modified: socket.Modified}}}
	require.NoError(t, w.bury(t.Context(), d, time.Now()))
	require.NotZero(t, wakes)
	assert.Equal(t, map[string]string{ann.token: a.config.Instance}, keys(t, store, socketPrefix))
	assert.Contains(t, keys(t, store, instancePrefix), a.config.Instance)
}
