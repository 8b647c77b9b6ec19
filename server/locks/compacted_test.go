package locks_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
	"github.com/holdfast-dev/holdfast/server/locks"
)

// compacting is a store that another server compacts during the first read of all locks.
type compacting struct {
	*kv.Store
	reads int
}

func (c *compacting) Each(ctx context.Context, prefix string, limit int64, f func([]kv.Entry) error) (int64, error) {
	c.reads++
	revision, err := c.Store.Each(ctx, prefix, limit, f)
	if c.reads == 1 && err == nil {
		err = kv.ErrCompacted // of a later page
	}
	return revision, err
}

// A server starts while another one compacts the history of a store that is nearly full, which it does every ten seconds.
func TestStartDuringACompaction(t *testing.T) {
	store := &compacting{Store: kvtest.Open(t)}
	held, err := open(t, store.Store).Acquire(t.Context(), want(ann, at("p")))
	require.NoError(t, err)
	table, err := locks.Open(t.Context(), store, locks.Config{})
	require.NoError(t, err)
	t.Cleanup(table.Close)
	require.Equal(t, 2, store.reads)
	_, err = table.Renew(t.Context(), held.ID, ann.ID)
	require.NoError(t, err)
}
