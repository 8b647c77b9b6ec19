package rooms

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
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
	require.NoError(t, w.bury(t.Context(), d, time.Now()))
	require.NotZero(t, wakes)
	assert.Equal(t, map[string]string{l.ann.token: l.config.Instance}, keys(t, l.store, socketPrefix))
	assert.Contains(t, keys(t, l.store, instancePrefix), l.config.Instance)
}
