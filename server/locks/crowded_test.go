package locks_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
	"github.com/holdfast-dev/holdfast/server/locks"
)

// reading counts the transactions that only read.
type reading struct {
	*kv.Store
	reads atomic.Int64
}

func (r *reading) Commit(ctx context.Context, txn kv.Txn) (kv.Result, error) {
	if len(txn.If) == 0 && !slices.ContainsFunc(txn.Then, kv.Op.Puts) {
		r.reads.Add(1)
	}
	return r.Store.Commit(ctx, txn)
}

// A listing of a place with many locks below it does not ask the store for them: etcd counts all keys of a place at each read, and all
// writes wait meanwhile.
func TestAListingOfManyLocksDoesNotReadThemAll(t *testing.T) {
	store := &reading{Store: kvtest.Open(t)}
	table, err := locks.Open(t.Context(), store, locks.Config{})
	require.NoError(t, err)
	t.Cleanup(table.Close)
	const many = 60
	for i := range many {
		_, err := table.Acquire(t.Context(), want(ann, at("place", fmt.Sprint(i))))
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool {
		seen := 0
		return table.Seen(at("place", fmt.Sprint(many-1)), func([]locks.Path) bool { seen++; return true }) && seen > 0
	}, 10*time.Second, time.Millisecond)
	before := store.reads.Load()
	page, err := table.List(t.Context(), at("place"), "", 10)
	require.NoError(t, err)
	assert.Len(t, page.Holders, 10)
	assert.NotEmpty(t, page.Next)
	assert.Equal(t, before, store.reads.Load())
}
