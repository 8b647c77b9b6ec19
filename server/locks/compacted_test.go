package locks_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
	"github.com/holdfast-dev/holdfast/server/locks"
)

// compacting is a store that another server compacts during each read of all locks as of one revision.
type compacting struct{ *kv.Store }

func (compacting) Each(ctx context.Context, prefix string, limit int64, f func([]kv.Entry) error) (int64, error) {
	return 0, kv.ErrCompacted
}

// expired is a store whose history ends during the first read that watches the changes.
type expired struct {
	compacting
	failed *bool
}

func (e expired) ReadWatched(ctx context.Context, prefix string, limit int64, load func([]kv.Entry, int64), f func([]kv.Change) error) error {
	if !*e.failed {
		*e.failed = true
		return kv.ErrCompacted
	}
	return e.compacting.ReadWatched(ctx, prefix, limit, load, f)
}

// slow is a store that others change and compact each time that a server has loaded the locks.
type slow struct {
	*kv.Store
	t     *testing.T
	reads *atomic.Int64
}

func (s slow) compact(ctx context.Context) {
	s.reads.Add(1)
	for range 3 {
		changed, err := s.Commit(ctx, kv.Txn{Then: []kv.Op{kv.Put("locks/heard", nil)}})
		assert.NoError(s.t, err)
		assert.NoError(s.t, s.Compact(ctx, changed.Revision))
	}
}

func (s slow) Each(ctx context.Context, prefix string, limit int64, f func([]kv.Entry) error) (int64, error) {
	defer s.compact(ctx)
	return s.Store.Each(ctx, prefix, limit, f)
}

func (s slow) ReadWatched(ctx context.Context, prefix string, limit int64, load func([]kv.Entry, int64), f func([]kv.Change) error) error {
	return s.Store.ReadWatched(ctx, prefix, limit, func(all []kv.Entry, revision int64) { s.compact(ctx); load(all, revision) }, f)
}

// A server starts while others compact the history of a store that is nearly full. They do so every ten seconds, and the server needs longer
// to read a million locks.
func TestStartDuringCompactions(t *testing.T) {
	store := kvtest.Open(t)
	held, err := open(t, store).Acquire(t.Context(), want(ann, at("p")))
	require.NoError(t, err)
	for name, compacted := range map[string]locks.Store{"short": compacting{store}, "long": expired{compacting{store}, new(bool)}} {
		table, err := locks.Open(t.Context(), compacted, locks.Config{})
		require.NoError(t, err, name)
		t.Cleanup(table.Close)
		_, err = table.Renew(t.Context(), held.ID, ann.ID)
		require.NoError(t, err, name)
	}
}

// Loading a million locks takes longer than the time between two compactions. The server reads them once more, and follows all changes from
// then on. Otherwise it would read all locks again and again, and show grants and releases only after each of these reads.
func TestLoadingLongerThanBetweenCompactions(t *testing.T) {
	reads := new(atomic.Int64)
	table, err := locks.Open(t.Context(), slow{kvtest.Open(t), t, reads}, locks.Config{})
	require.NoError(t, err)
	t.Cleanup(table.Close)
	for range 20 {
		require.NoError(t, table.GiveUp(t.Context(), ann.ID, "t")) // the view contains it
	}
	assert.EqualValues(t, 2, reads.Load())
}
