package events

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
)

// On a busy machine, the watch of a server that has just started may begin after a compaction that removed changes
// unknown to it. The server does not know the missed events. So its streams end, and a client that resumes gets the
// state.
func TestHubThatMissesACompaction(t *testing.T) {
	store := kvtest.Open(t)
	_, before, err := store.Get(t.Context(), prefix)
	require.NoError(t, err)
	for range 2 {
		_, err = store.Commit(t.Context(), kv.Txn{Then: []kv.Op{Record("r", Event{Type: Updated})}})
		require.NoError(t, err)
	}
	_, now, err := store.Get(t.Context(), prefix)
	require.NoError(t, err)
	require.NoError(t, store.Compact(t.Context(), now))

	h := &Hub{store: store, listeners: map[string]map[*listener]struct{}{}, state: func(context.Context, string) (Event, error) {
		return Event{Revision: now}, nil
	}}
	h.recent.begin(before)
	ended := make(chan error, 1)
	go func() { ended <- h.Stream(t.Context(), "r", Now, atOnce, func([]byte) error { return nil }) }()
	require.Eventually(t, func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.listeners["r"]) == 1
	}, 10*time.Second, time.Millisecond)

	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	h.running.Go(func() { h.follow(ctx, before) })
	require.ErrorIs(t, <-ended, ErrSlow)

	sent := make(chan []byte, 1)
	go func() {
		ended <- h.Stream(ctx, "r", before, atOnce, func(text []byte) error { sent <- text; return nil })
	}()
	require.Contains(t, string(<-sent), State)
	stop()
	require.Error(t, <-ended)
	h.running.Wait()
}
