package locks_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv/memory"
	"github.com/holdfast-dev/holdfast/server/locks"
)

// A browser with many cookies has as many ids, and each of its acquisitions looks under all of them for an earlier request with its ticket.
// The store is asked a few times only, or one session would cost as much as hundreds.
func TestManyIDsAreLookedUpTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // no timer of the table runs meanwhile, so that all requests are those of the lookup
		var asked atomic.Int64
		m := memory.New()
		defer m.Close()
		store := m.Client(func(_ context.Context, request string) (before, after error) {
			if request != "watch" {
				asked.Add(1)
			}
			return nil, nil
		})
		defer func() { assert.NoError(t, store.Close()) }()
		table := open(t, store)
		held, err := table.Acquire(t.Context(), want(ann, at("p")))
		require.NoError(t, err)
		defer func() { assert.NoError(t, table.Release(t.Context(), held.ID, ann.ID)) }()
		broken(t, table, ticket(bob, "b", at("p")), 1)

		owners := make([]string, 256)
		for i := range owners {
			owners[i] = "id" + strconv.Itoa(i)
		}
		find := func() string {
			synctest.Wait()
			before := asked.Load()
			owner, err := table.HolderOfTicket(t.Context(), "b", owners)
			require.NoError(t, err)
			assert.LessOrEqual(t, asked.Load()-before, int64(4))
			return owner
		}
		assert.Empty(t, find())
		owners[200] = bob.ID
		assert.Equal(t, bob.ID, find(), "it waits")
		granted, err := table.Acquire(t.Context(), ticket(locks.Holder{ID: owners[220], Name: "Bob"}, "b", at("q")))
		require.NoError(t, err)
		assert.Equal(t, bob.ID, find(), "the first one")
		owners[200] = "nobody"
		assert.Equal(t, granted.Holder.ID, find(), "the table has seen the grant in the store")
	})
}
