package events

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv/memory"
)

// The store is away for ten minutes while a watch looks for past events. Clients that resume afterwards need not wait nine times as long as that.
func TestAnOutageDelaysNoLaterResumption(t *testing.T) {
	defer func(n int) { maxMissed = n }(maxMissed)
	maxMissed = 4
	synctest.Test(t, func(t *testing.T) {
		const missed = 10
		m := memory.New()
		var outage atomic.Int64
		store := m.Client(func(_ context.Context, request string) (_, _ error) {
			if request == "watch" {
				time.Sleep(time.Duration(outage.Load()))
			}
			return nil, nil
		})
		after := commit(t, store, Record("r", Event{Type: Locked}))
		for range missed {
			commit(t, store, Record("r", Event{Type: Updated}))
		}
		h, err := Open(t.Context(), store, nil)
		require.NoError(t, err)
		all := errors.New("all")
		resume := func() (took time.Duration) {
			begun, heard := time.Now(), 0
			err := h.Stream(t.Context(), "r", after, atOnce, func([]byte) error {
				if heard++; heard == missed {
					return all
				}
				return nil
			})
			require.ErrorIs(t, err, all)
			return time.Since(begun)
		}
		outage.Store(int64(10 * time.Minute))
		assert.Equal(t, 10*time.Minute, resume())
		outage.Store(0)
		assert.Less(t, resume(), time.Minute)
		h.Close()
		require.NoError(t, store.Close())
		m.Close()
	})
}
