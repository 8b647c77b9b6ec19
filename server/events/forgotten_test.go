package events

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/memory"
)

// A document is deleted, and its lock stays. A client that resumes at a server that has just started gets the present
// state, whether or not the document had events before.
func TestResumeAfterADeletion(t *testing.T) {
	for _, known := range []bool{true, false} {
		m := memory.New()
		defer m.Close()
		store := m.Client(nil)
		defer func() { assert.NoError(t, store.Close()) }()
		before := commit(t, store, kv.Put("other", nil))
		if known {
			before = commit(t, store, Record("r", Event{Type: Unlocked}))
		}
		locked := commit(t, store, Record("r", Event{Type: Locked, HolderID: "ann"}))
		now := commit(t, store, Forget("r"))

		h, err := Open(t.Context(), store, func(context.Context, string) (Event, error) {
			return Event{Revision: now, HolderID: "ann", Token: locked}, nil
		})
		require.NoError(t, err)
		defer h.Close()
		ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
		defer stop()
		heard := errors.New("heard")
		var text string
		err = h.Stream(ctx, "r", before, atOnce, func(message []byte) error { text = string(message); return heard })
		require.ErrorIs(t, err, heard, "known before: %v", known)
		assert.Contains(t, text, State)
	}
}

// atOnce lets a stream read past events without waiting.
func atOnce() (end func(), err error) { return func() {}, nil }
