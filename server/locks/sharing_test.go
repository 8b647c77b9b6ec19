package locks

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
)

// holdTogether makes leases on places of their own below a place, at one revision.
func holdTogether(t *testing.T, store Store, below string, n int) (token int64) {
	t.Helper()
	now := time.Now()
	var ops []kv.Op
	for i := range n {
		r, err := Request{Paths: []Path{{below, fmt.Sprint(now.UnixNano(), "-", i)}}, Holder: Holder{ID: fmt.Sprint("holder-", i)}, TTL: time.Hour}.normal()
		require.NoError(t, err)
		c := newClaim(r, now)
		ops = append(ops, kv.Put(c.beatKey(), encodeBeat(now.Add(time.Hour))), kv.Put(c.home(), c.encode()))
	}
	result, err := store.Commit(t.Context(), kv.Txn{Then: ops})
	require.NoError(t, err)
	return result.Revision
}

// Leases that share a token are on the pages of a listing once, in the same order for every page size, on servers that
// saw them come and on servers that read them.
func TestListingsOfLeasesThatShareAToken(t *testing.T) {
	for _, each := range []int{5, 40} { // one read returns all, or not
		table := opened(t)
		var tokens []int64
		for range 3 {
			tokens = append(tokens, holdTogether(t, table.store, "a", each))
		}
		later := openOver(t, table.store)
		all, _, err := table.Inspect(t.Context(), Path{"a"})
		require.NoError(t, err)
		require.Len(t, all, 3*each)
		for i, l := range all {
			assert.Equal(t, tokens[i/each], l.Token)
		}
		for i, size := range []int{1, 3, 5, 7, 40, 41, 1000} {
			for _, server := range []*Table{table, later} {
				var listed []Lease
				for after, more := "", true; more; more = after != "" {
					page, err := server.List(t.Context(), Path{"a"}, after, size)
					require.NoError(t, err)
					listed, after = append(listed, page.Holders...), page.Next
				}
				assert.Equal(t, ids(all), ids(listed), size)
			}
			SetFew(t, i+2)
		}
		page, err := table.List(t.Context(), Path{"a"}, fmt.Sprint("h", tokens[0]), 1000) // of a former version
		require.NoError(t, err)
		assert.Equal(t, ids(all[each:]), ids(page.Holders))
	}
}

func ids(list []Lease) (names []string) {
	for _, l := range list {
		names = append(names, l.ID)
	}
	return names
}

// A position has a name only where two leases share a token, since former versions refuse a position with a name.
func TestPositionsBetweenTokensHaveNoName(t *testing.T) {
	table := opened(t)
	holdTogether(t, table.store, "a", 2)
	holdTogether(t, table.store, "a", 1)
	var names []bool
	for after := ""; len(names) < 2; {
		page, err := table.List(t.Context(), Path{"a"}, after, 1)
		require.NoError(t, err)
		after = page.Next
		names = append(names, slices.Contains([]byte(after), '.'))
	}
	assert.Equal(t, []bool{true, false}, names)
}
