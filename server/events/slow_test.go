package events

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv/memory"
)

// A client resumes after many events, which needs a watch of the past, and reads nothing. Another one resumes meanwhile, and gets all events at
// once and in order.
func TestASlowReaderOfPastEventsStopsNoOther(t *testing.T) {
	defer func(n int) { maxMissed = n }(maxMissed)
	maxMissed = 4
	const missed = 3000
	synctest.Test(t, func(t *testing.T) {
		m := memory.New()
		store := m.Client(nil)
		after := commit(t, store, Record("r", Event{Type: Locked}))
		for range missed {
			commit(t, store, Record("r", Event{Type: Updated}))
		}
		h, err := Open(t.Context(), store, nil)
		require.NoError(t, err)
		h.recent.begin(after + missed)
		ctx, stop := context.WithCancel(t.Context())
		slow := make(chan error, 1)
		go func() {
			slow <- h.Stream(ctx, "r", after, atOnce, func([]byte) error { <-ctx.Done(); return ctx.Err() })
		}()
		synctest.Wait()

		begun, heard, all := time.Now(), 0, errors.New("all")
		patience, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		err = h.Stream(patience, "r", after, atOnce, func([]byte) error {
			if heard++; heard == missed {
				return all
			}
			return nil
		})
		require.ErrorIs(t, err, all)
		assert.Less(t, time.Since(begun), time.Minute)
		stop()
		require.Error(t, <-slow)
		h.Close()
		assert.NoError(t, store.Close())
		m.Close()
	})
}
