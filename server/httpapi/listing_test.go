package httpapi

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/memory"
	"github.com/holdfast-dev/holdfast/server/locks"
	"github.com/holdfast-dev/holdfast/server/policy"
	"github.com/holdfast-dev/holdfast/server/sessions"
)

// counting returns a store, and the number of its requests of a kind.
func counting(t *testing.T, kind string) (*kv.Store, *atomic.Int64) {
	m := memory.New()
	t.Cleanup(m.Close)
	count := new(atomic.Int64)
	store := m.Client(func(_ context.Context, request string) (before, after error) {
		if request == kind {
			count.Add(1)
		}
		return nil, nil
	})
	t.Cleanup(func() { _ = store.Close() })
	return store, count
}

// A user may read one of many locks. The listing costs the store no more than for a user who may read all of them.
func TestAListingForAUserWhoMayReadLittle(t *testing.T) {
	store, transactions := counting(t, "txn")
	table, err := locks.Open(t.Context(), store, locks.Config{})
	require.NoError(t, err)
	t.Cleanup(table.Close)
	rules, err := policy.Parse([]byte("anyone documents/d/visible read\n"))
	require.NoError(t, err)
	a, err := New(Config{Locks: table, Policy: func() *policy.Policy { return rules }})
	require.NoError(t, err)
	place := locks.Document("d")
	for i := range 100 {
		for _, path := range []locks.Path{append(place, fmt.Sprint("hidden ", i)), append(place, "visible", fmt.Sprint(i))}[:1+i/98] {
			_, err := table.Acquire(t.Context(), locks.Request{Paths: []locks.Path{path}, Holder: locks.Holder{ID: "ann"}, TTL: time.Hour})
			require.NoError(t, err)
		}
	}

	transactions.Store(0)
	page, err := a.listLocks(t.Context(), sessions.Session{}, place, "", 1)
	require.NoError(t, err)
	require.Len(t, page.Holders, 1)
	assert.Equal(t, append(place, "visible", "98"), page.Holders[0].Paths[0])
	assert.LessOrEqual(t, transactions.Load(), int64(3))
	page, err = a.listLocks(t.Context(), sessions.Session{}, place, page.Next, 1)
	require.NoError(t, err)
	require.Len(t, page.Holders, 1)
	assert.Equal(t, append(place, "visible", "99"), page.Holders[0].Paths[0])
	assert.Empty(t, page.Next)
}
