package content

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/blobs"
	"github.com/holdfast-dev/holdfast/server/kv/memory"
	"github.com/holdfast-dev/holdfast/server/locks"
)

// A document is deleted, or saved again, while its history is read. The history is that of one moment.
func TestAHistoryIsThatOfOneMoment(t *testing.T) {
	var meanwhile func()
	m := memory.New()
	store := m.Client(func(_ context.Context, request string) (before, after error) {
		if do := meanwhile; do != nil && request == "txn" {
			meanwhile = nil
			do()
		}
		return nil, nil
	})
	table, err := locks.Open(t.Context(), store, locks.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { table.Close(); assert.NoError(t, store.Close()); m.Close() })
	files, err := blobs.OpenFiles(t.TempDir())
	require.NoError(t, err)
	s := New(Config{KV: store, Locks: table, Blobs: files, Keep: 3})
	lease, err := table.Acquire(t.Context(), locks.Request{Paths: []locks.Path{locks.Document("r")}, Holder: locks.Holder{ID: "ann"}, TTL: time.Hour})
	require.NoError(t, err)
	for _, text := range []string{"one", "two", "three"} {
		_, err = s.save(t, "r", lease.Token, text)
		require.NoError(t, err)
	}

	meanwhile = func() {
		_, err := s.save(t, "r", lease.Token, "four")
		assert.NoError(t, err)
	}
	list, err := s.History(t.Context(), "r")
	require.NoError(t, err)
	require.Len(t, list, 3)
	for _, info := range list {
		_, err := s.Find(t.Context(), "r", info.Generation)
		assert.NoError(t, err)
	}

	meanwhile = func() { assert.NoError(t, s.Delete(t.Context(), "r", "ann", lease.Token, Save{}, nil)) }
	_, err = s.History(t.Context(), "r")
	require.ErrorIs(t, err, ErrNotFound)
}
