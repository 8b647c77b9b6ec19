package content

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/blobs"
	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/memory"
	"github.com/holdfast-dev/holdfast/server/locks"
)

// etcd has no space for a save. It carries out the first transaction that exceeds its quota, with the same error as for those that it
// refuses. The writer learns which of the two happened, and a refused save leaves no blob.
func TestASaveInAFullStoreHasAKnownOutcome(t *testing.T) {
	for name, saved := range map[string]bool{"carried out": true, "refused": false} {
		t.Run(name, func(t *testing.T) {
			m := memory.New()
			var full atomic.Bool
			store := m.Client(func(_ context.Context, request string) (before, after error) {
				switch {
				case request != "txn" || !full.CompareAndSwap(true, false):
				case saved:
					after = memory.ErrNoSpace
				default:
					before = memory.ErrNoSpace
				}
				return before, after
			})
			table, err := locks.Open(t.Context(), store, locks.Config{})
			require.NoError(t, err)
			t.Cleanup(func() { table.Close(); assert.NoError(t, store.Close()); m.Close() })
			files, err := blobs.OpenFiles(t.TempDir())
			require.NoError(t, err)
			f := &faulty{Files: files}
			s := New(Config{KV: store, Locks: table, Blobs: f, Keep: 1})
			lease, err := table.Acquire(t.Context(), locks.Request{Paths: []locks.Path{locks.Document("r")}, Holder: locks.Holder{ID: "ann"}, TTL: time.Hour})
			require.NoError(t, err)
			_, err = s.save(t, "r", lease.Token, "before")
			require.NoError(t, err)

			f.puts = func() error { full.Store(true); return nil }
			info, err := s.save(t, "r", lease.Token, "after")
			f.puts = nil
			data, now, readErr := s.Read(t.Context(), "r")
			require.NoError(t, readErr)
			if saved {
				require.NoError(t, err)
				assert.Equal(t, "after", string(data))
				assert.Equal(t, now, info)
				return
			}
			require.ErrorIs(t, err, kv.ErrReserved)
			assert.Equal(t, "before", string(data))
			assert.Len(t, f.names(t), 1, "the blob is deleted")
			assert.False(t, s.NeedsSweep())
		})
	}
}

// etcd carries out the first save of a document without space for it. Before the writer learns that, another client moves the document. Its
// bytes stay.
func TestASaveInAFullStoreIsMovedBeforeItsOutcomeIsKnown(t *testing.T) {
	m := memory.New()
	var full, moves atomic.Bool
	var move func()
	store := m.Client(func(_ context.Context, request string) (before, after error) {
		switch {
		case request != "txn":
		case full.CompareAndSwap(true, false):
			moves.Store(true)
			after = memory.ErrNoSpace
		case moves.CompareAndSwap(true, false):
			move()
		}
		return before, after
	})
	table, err := locks.Open(t.Context(), store, locks.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { table.Close(); assert.NoError(t, store.Close()); m.Close() })
	files, err := blobs.OpenFiles(t.TempDir())
	require.NoError(t, err)
	f := &faulty{Files: files, puts: func() error { full.Store(true); return nil }}
	s := New(Config{KV: store, Locks: table, Blobs: f, Keep: 1})
	right := func(document string) Right {
		lease, err := table.Acquire(t.Context(), locks.Request{Paths: []locks.Path{locks.Document(document)}, Holder: locks.Holder{ID: "ann"}, TTL: time.Hour})
		require.NoError(t, err)
		return s.documentRight(document, Writer{Holder: "ann", Maker: "ann"}, lease.Token)
	}
	from, to := right("from"), right("to")
	move = func() { assert.NoError(t, s.MoveUnder(t.Context(), "from", "to", from, to, nil)) }
	_, err = s.save(t, "from", from.Token, "text")
	require.NoError(t, err)
	data, _, err := s.Read(t.Context(), "to")
	require.NoError(t, err)
	assert.Equal(t, "text", string(data))
}
