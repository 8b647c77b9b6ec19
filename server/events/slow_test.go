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

// withMissed returns the events of a document after which a client resumes, and the revision after which it has missed so many.
func withMissed(t *testing.T, missed int) (h *Hub, after int64, end func()) {
	t.Helper()
	m := memory.New()
	store := m.Client(nil)
	after = commit(t, store, Record("r", Event{Type: Locked}))
	for range missed {
		commit(t, store, Record("r", Event{Type: Updated}))
	}
	h, err := Open(t.Context(), store, nil)
	require.NoError(t, err)
	return h, after, func() {
		h.Close()
		assert.NoError(t, store.Close())
		m.Close()
	}
}

// A client resumes after many events, which needs a watch of the past, and reads nothing. Another one resumes meanwhile, and gets all events at
// once and in order.
func TestASlowReaderOfPastEventsStopsNoOther(t *testing.T) {
	defer func(n int) { maxMissed = n }(maxMissed)
	maxMissed = 4
	const missed = 3000
	synctest.Test(t, func(t *testing.T) {
		h, after, end := withMissed(t, missed)
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
		err := h.Stream(patience, "r", after, atOnce, func([]byte) error {
			if heard++; heard == missed {
				return all
			}
			return nil
		})
		require.ErrorIs(t, err, all)
		assert.Less(t, time.Since(begun), time.Minute)
		stop()
		require.Error(t, <-slow)
		end()
	})
}

// A client resumes after many events, and takes a while to receive each of them. Another one of its address waits for its turn, and does not
// wait until the slow one has received everything.
func TestASlowReaderDoesNotKeepItsTurn(t *testing.T) {
	const missed = 100
	synctest.Test(t, func(t *testing.T) {
		h, after, end := withMissed(t, missed)
		turns := make(chan struct{}, 1)
		turn := func() (func(), error) { turns <- struct{}{}; return func() { <-turns }, nil }
		ctx, stop := context.WithCancel(t.Context())
		slow := make(chan error, 1)
		received := after
		go func() {
			slow <- h.Stream(ctx, "r", after, turn, func([]byte) error { time.Sleep(9 * time.Second); received++; return nil })
		}()
		synctest.Wait()

		begun, heard, all := time.Now(), 0, errors.New("all")
		err := h.Stream(t.Context(), "r", after, turn, func([]byte) error {
			if heard++; heard == missed {
				return all
			}
			return nil
		})
		require.ErrorIs(t, err, all)
		assert.Less(t, time.Since(begun), 2*time.Minute)
		stop()
		require.ErrorIs(t, <-slow, ErrSlow)
		assert.Greater(t, received, after, "the slow one gets further with each attempt")
		end()
	})
}
