package events

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
	"github.com/holdfast-dev/holdfast/server/kv/memory"
)

// A client that has seen nothing resumes after revision 0, whose history the store no longer has. It gets the state, whether or not the
// document has events now.
func TestResumeFromTheBeginningAfterACompaction(t *testing.T) {
	for _, known := range []bool{true, false} {
		store := kvtest.Open(t)
		now := commit(t, store, kv.Put("other", nil))
		require.NoError(t, store.Compact(t.Context(), now))
		if known {
			now = commit(t, store, Record("r", Event{Type: Locked}))
		}
		h, err := Open(t.Context(), store, func(context.Context, string) (Event, error) { return Event{Revision: now}, nil })
		require.NoError(t, err)
		defer h.Close()
		assert.Equal(t, State, firstEvent(t, h, 0), "known: %v", known)
	}
}

// A document without events is locked at the moment when a client resumes. The client gets the event of the lock, and no state instead.
func TestLockDuringAResumeIsAnEventAndNoState(t *testing.T) {
	m := memory.New()
	defer m.Close()
	store := m.Client(nil)
	defer func() { assert.NoError(t, store.Close()) }()
	before := commit(t, store, kv.Put("other", nil))
	commit(t, store, kv.Put("other", nil)) // unknown to the hub, so the store is asked
	h, err := Open(t.Context(), store, func(context.Context, string) (Event, error) {
		now := commit(t, store, Record("r", Event{Type: Locked}))
		return Event{Revision: now, Token: now}, nil
	})
	require.NoError(t, err)
	defer h.Close()
	assert.Equal(t, Locked, firstEvent(t, h, before))
}

func commit(t *testing.T, store *kv.Store, op kv.Op) int64 {
	result, err := store.Commit(t.Context(), kv.Txn{Then: []kv.Op{op}})
	require.NoError(t, err)
	return result.Revision
}

// firstEvent returns the type of the first event of the document "r" after a revision.
func firstEvent(t *testing.T, h *Hub, after int64) string {
	var e Event
	heard := errors.New("heard")
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
	defer stop()
	err := h.Stream(ctx, "r", after, atOnce, func(text []byte) error {
		require.NoError(t, json.Unmarshal(text, &e))
		return heard
	})
	require.ErrorIs(t, err, heard)
	return e.Type
}

// Another program wrote the first value of a document's events, which this server cannot read. A client that resumes from before gets the events
// that follow.
func TestResumeBeforeAnUnreadableEvent(t *testing.T) {
	m := memory.New()
	defer m.Close()
	store := m.Client(nil)
	defer func() { assert.NoError(t, store.Close()) }()
	before := commit(t, store, kv.Put("other", nil))
	commit(t, store, kv.Put(prefix+"r", []byte("?")))
	commit(t, store, Record("r", Event{Type: Updated}))
	h, err := Open(t.Context(), store, nil)
	require.NoError(t, err)
	defer h.Close()
	assert.Equal(t, Updated, firstEvent(t, h, before))
}
