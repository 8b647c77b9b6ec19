package locks_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
	"github.com/holdfast-dev/holdfast/server/locks"
)

// Two places have more slots than one transaction can confirm. Holders acquire them at once, over two servers: each gets a slot of its own, the
// next one is refused, and a released slot is free at once.
func TestManySlotsOfTwoServers(t *testing.T) {
	store := kvtest.Open(t)
	tables := []*locks.Table{open(t, store), open(t, store)}
	const n = 150
	request := func(i int) locks.Request { return slots(who(fmt.Sprint(i)), n, at("a"), at("b")) }
	leases := make([]locks.Lease, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			var err error
			leases[i], err = tables[i%2].Acquire(t.Context(), request(i))
			assert.NoError(t, err)
		})
	}
	all.Wait()
	taken := map[int]bool{}
	for _, l := range leases {
		taken[l.Slot] = true
	}
	require.Len(t, taken, n)
	for i, table := range tables {
		_, err := table.Acquire(t.Context(), request(n+i))
		require.ErrorAs(t, err, new(*locks.DeniedError))
	}
	for i := range 10 {
		freed := leases[7*i]
		require.NoError(t, tables[i%2].Release(t.Context(), freed.ID, freed.Holder.ID))
		next, err := tables[(i+1)%2].Acquire(t.Context(), request(n+2+i))
		require.NoError(t, err)
		assert.Equal(t, freed.Slot, next.Slot)
	}
}
