package rooms

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
)

// The times of the rooms are read again, because the store's history no longer has what the watch missed. A room that has
// not changed is still idle.
func TestARoomThatIsReadAgainStaysIdle(t *testing.T) {
	store := kvtest.Open(t)
	now := time.Now()
	_, err := store.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Put(updatePrefix+"r", encodeTime(now))}})
	require.NoError(t, err)
	p := newPresence("here", noSocket)
	p.clock = func() time.Time { return now }
	updates := p.kinds()[3]
	require.Equal(t, updatePrefix, updates.prefix)
	_, err = p.readAll(t.Context(), store, updates)
	require.NoError(t, err)
	now = now.Add(time.Hour)
	_, err = p.readAll(t.Context(), store, updates)
	require.NoError(t, err)
	require.Len(t, p.idleSince(now.Add(-time.Minute)), 1)
}
