package content

import (
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

// The first save of a document gets no answer, and its transaction is still on its way, when the holder deletes or moves the document. WebDAV and
// other programs state no order of their saves. The late save does not bring the document back, and the holder may save again.
func TestALateSaveBringsBackNoDocumentThatIsGone(t *testing.T) {
	for name, c := range map[string]struct {
		again bool // the holder has saved again before
		leave func(t *testing.T, s *Store, right func(document string) Right) error
	}{
		"deleted":                       {true, deleteWithoutOrder},
		"deleted before it has content": {false, deleteWithoutOrder},
		"moved": {true, func(t *testing.T, s *Store, right func(string) Right) error {
			return s.MoveUnder(t.Context(), "r", "to", right("r"), right("to"), nil)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { leaveBeforeALateSave(t, c.again, c.leave) })
		})
	}
}

func deleteWithoutOrder(t *testing.T, s *Store, right func(string) Right) error {
	return s.DeleteUnder(t.Context(), "r", right("r"), Save{}, nil)
}

func leaveBeforeALateSave(t *testing.T, again bool, leave func(*testing.T, *Store, func(string) Right) error) {
	m := memory.New()
	store, late, arrived := m.Delaying(time.Second)
	table, err := locks.Open(t.Context(), store, locks.Config{})
	require.NoError(t, err)
	files, err := blobs.OpenFiles(t.TempDir())
	require.NoError(t, err)
	s := New(Config{KV: store, Locks: table, Blobs: files})
	tokens := map[string]int64{}
	for _, document := range []string{"r", "to"} {
		lease, err := table.Acquire(t.Context(), locks.Request{Paths: []locks.Path{locks.Document(document)}, Holder: locks.Holder{ID: "ann"}, TTL: 24 * time.Hour})
		require.NoError(t, err)
		tokens[document] = lease.Token
	}
	right := func(document string) Right {
		return s.documentRight(document, Writer{Holder: "ann", Maker: "ann"}, tokens[document])
	}
	save := func(text string) error {
		_, err := s.WriteUnder(t.Context(), "r", right("r"), Save{}, nil, []byte(text))
		return err
	}
	kept := func() (keys []string) {
		keys, err := store.Keys(t.Context(), deletedPrefix)
		require.NoError(t, err)
		return keys
	}
	late.Store(true)
	require.ErrorIs(t, save("old"), kv.ErrUnavailable)
	if again {
		require.NoError(t, save("new"))
	}
	require.NoError(t, leave(t, s, right))
	<-arrived
	_, err = s.Find(t.Context(), "r", "")
	require.ErrorIs(t, err, ErrNotFound)
	assert.NotEmpty(t, kept())
	require.NoError(t, save("newer"))
	text, _, err := s.Read(t.Context(), "r")
	require.NoError(t, err)
	assert.Equal(t, "newer", string(text))
	assert.Empty(t, kept())

	require.NoError(t, deleteWithoutOrder(t, s, right))
	time.Sleep(2 * OrphanAge)
	assert.Empty(t, kept(), "the lock lasts, and no save can be so late")
	table.Close()
	assert.NoError(t, store.Close())
	m.Close()
}

// Many deletions share a lease, but not all: etcd deletes the keys of one in one step.
func TestDeletionsShareALease(t *testing.T) {
	s, _, lock := opened(t, 1)
	right := s.documentRight("r", Writer{Holder: "ann", Maker: "ann"}, lock("r"))
	leases := map[*kv.Lease]int{}
	for range 2*sharedKeys + 2 {
		_, err := s.rememberFor(t.Context(), "r", description{Token: right.Token})
		require.NoError(t, err)
		leases[s.remembered.Load().lease]++
	}
	assert.Len(t, leases, 2)
	for _, keys := range leases {
		assert.LessOrEqual(t, keys, sharedKeys+1)
	}
}
