package dav

import (
	"context"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv/memory"
	"github.com/holdfast-dev/holdfast/server/locks"
	"github.com/holdfast-dev/holdfast/server/metrics"
)

// The store stops answering just after it has granted a LOCK, for longer than the request lasts. The program gets an error and does not
// know the token. The lock ends when the store answers again, long before its time.
func TestALockThatItsProgramDoesNotGetEnds(t *testing.T) {
	t.Parallel()
	s := newWaited(t)
	var cut atomic.Bool
	store := s.memory.Client(func(context.Context, string) (before, after error) {
		if cut.Load() {
			return memory.ErrLost, nil
		}
		return nil, nil
	})
	t.Cleanup(func() { _ = store.Close() })
	counts := metrics.New(nil)
	counts.Grants = counted{counts.Grants, func() { cut.Store(true) }}
	var err error
	s.Locks, err = locks.Open(t.Context(), store, locks.Config{Metrics: counts})
	require.NoError(t, err)
	t.Cleanup(s.Locks.Close)
	s.api.Locks, s.Store, s.Contents.KV = s.Locks, store, store

	answer := s.answer("LOCK", "/dav/a", lockBody)
	require.Equal(t, http.StatusServiceUnavailable, answer.Code, answer.Body.String())
	held := func() bool {
		lease, _, err := s.table.At(t.Context(), place{"a"}.path())
		return err != nil || lease.Token != 0
	}
	require.True(t, held())
	cut.Store(false)
	assert.Eventually(t, func() bool { return !held() }, 10*time.Second, time.Millisecond)
}

// The store stops answering in the middle of a change of a collection. The request ends, and does not wait for the store once more for
// each member that is left.
func TestAChangeOfACollectionEndsWithoutTheStore(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"DELETE", "MOVE", "COPY"} {
		s := newWaited(t)
		for i := range 20 {
			s.save("d~." + strconv.Itoa(i))
		}
		requests, left := 0, 1000
		store := s.memory.Client(func(_ context.Context, request string) (before, after error) {
			if request == "txn" {
				left--
			}
			if left <= 0 {
				requests++
				return memory.ErrLost, nil
			}
			return nil, nil
		})
		t.Cleanup(func() { _ = store.Close() })
		s.Contents, s.Store = s.handler(store, store).Contents, store
		left = 8
		answer := s.answer(method, "/dav/d", "", "Destination", "/dav/e")
		assert.Equal(t, http.StatusServiceUnavailable, answer.Code, "%s: %s", method, answer.Body)
		assert.Equal(t, 1, requests, method)
	}
}
