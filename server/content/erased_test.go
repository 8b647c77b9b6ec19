package content

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/blobs"
	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/memory"
	"github.com/holdfast-dev/holdfast/server/locks"
)

// The first save of a document gets no answer, and its transaction is still on its way. The holder saves again, and then an administrator erases
// the document. The old save does not bring the document back. The holder may repeat its last save, whose answer it may have lost, and go on.
func TestALateSaveBringsNoErasedDocumentBack(t *testing.T) {
	for name, saves := range map[string][]Save{
		"ordered": {{Draft: "x", Number: 1, Order: 1}, {Draft: "x", Number: 2, Order: 2}},
		"plain":   {{}, {}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { eraseBeforeALateSave(t, saves[0], saves[1]) })
		})
	}
}

func eraseBeforeALateSave(t *testing.T, first, second Save) {
	m := memory.New()
	store, late, arrived := m.Delaying(time.Second)
	table, err := locks.Open(t.Context(), store, locks.Config{})
	require.NoError(t, err)
	files, err := blobs.OpenFiles(t.TempDir())
	require.NoError(t, err)
	s := New(Config{KV: store, Locks: table, Blobs: files})
	lease, err := table.Acquire(t.Context(), locks.Request{Paths: []locks.Path{locks.Document("r")}, Holder: locks.Holder{ID: "ann"}, TTL: 24 * time.Hour})
	require.NoError(t, err)
	save := func(save Save, text string) error {
		_, err := s.Write(t.Context(), "r", Writer{Holder: "ann", Maker: "ann"}, lease.Token, save, nil, []byte(text))
		return err
	}

	late.Store(true)
	require.Error(t, save(first, "old"))
	require.NoError(t, save(second, "new"))
	require.NoError(t, s.Erase(t.Context(), "r", nil))
	<-arrived
	_, err = s.Find(t.Context(), "r", "")
	require.ErrorIs(t, err, ErrNotFound)
	if first.Order > 0 {
		require.ErrorIs(t, save(first, "old"), ErrStaleSave)
	}
	require.NoError(t, save(second, "new"))
	text, _, err := s.Read(t.Context(), "r")
	require.NoError(t, err)
	assert.Equal(t, "new", string(text))

	left := func() (keys []string) {
		keys, err := store.Keys(t.Context(), deletedPrefix)
		require.NoError(t, err)
		return keys
	}
	require.NoError(t, s.Erase(t.Context(), "r", nil))
	assert.Len(t, left(), 1)
	time.Sleep(2 * OrphanAge)
	assert.Empty(t, left())
	table.Close()
	assert.NoError(t, store.Close())
	m.Close()
}

// The same, but Bob has saved meanwhile, under a lock of his own that both share. An administrator erases the document before the late save of Ann.
func TestALateSaveUnderASharedLockBringsNothingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memory.New()
		store, late, arrived := m.Delaying(time.Second)
		table, err := locks.Open(t.Context(), store, locks.Config{})
		require.NoError(t, err)
		files, err := blobs.OpenFiles(t.TempDir())
		require.NoError(t, err)
		s := New(Config{KV: store, Locks: table, Blobs: files})
		right := func(holder string) Right {
			lease, err := table.Acquire(t.Context(), locks.Request{
				Paths: []locks.Path{locks.Document("r")}, Mode: locks.Shared, Holder: locks.Holder{ID: holder}, TTL: 24 * time.Hour})
			require.NoError(t, err)
			return Right{By: Writer{Holder: holder, Maker: holder}, Token: lease.Token, Fence: func(ctx context.Context) ([]kv.Cond, error) {
				fence, err := table.FenceOf(ctx, lease)
				return []kv.Cond{fence}, err
			}}
		}
		ann, bob := right("ann"), right("bob")
		late.Store(true)
		_, err = s.WriteUnder(t.Context(), "r", ann, Save{}, nil, []byte("old"))
		require.ErrorIs(t, err, kv.ErrUnavailable)
		_, err = s.WriteUnder(t.Context(), "r", bob, Save{}, nil, []byte("new"))
		require.NoError(t, err)
		require.NoError(t, s.Erase(t.Context(), "r", nil))
		<-arrived
		_, err = s.Find(t.Context(), "r", "")
		require.ErrorIs(t, err, ErrNotFound)
		_, err = s.WriteUnder(t.Context(), "r", ann, Save{}, nil, []byte("newer"))
		require.NoError(t, err, "a holder may save again")
		table.Close()
		assert.NoError(t, store.Close())
		m.Close()
	})
}

// The lock of the last save has ended, so no save under it can come late. Nothing is remembered of an erased document.
func TestErasedAfterTheLockLeavesNothing(t *testing.T) {
	s, _, lock := opened(t, 1)
	token := lock("r")
	_, err := s.save(t, "r", token, "text")
	require.NoError(t, err)
	require.NoError(t, s.Locks.ReleaseAt(t.Context(), locks.Document("r"), "ann", token))
	require.NoError(t, s.Erase(t.Context(), "r", nil))
	left, err := s.KV.Keys(t.Context(), deletedPrefix)
	require.NoError(t, err)
	assert.Empty(t, left)
}
