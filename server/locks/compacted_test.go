package locks_test

import (
	"context"
	"testing"

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

func (e expired) ReadWatched(ctx context.Context, prefix string, limit int64) ([]kv.Entry, int64, error) {
	if !*e.failed {
		*e.failed = true
		return nil, 0, kv.ErrCompacted
	}
	return e.compacting.ReadWatched(ctx, prefix, limit)
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
