package locks_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
	"github.com/holdfast-dev/holdfast/server/locks"
)

func slots(h locks.Holder, n int, paths ...locks.Path) locks.Request {
	r := want(h, paths...)
	r.Slots = n
	return r
}

// Slots of a place above or below are no slots of this one: the request is refused at once.
func TestSlotsOfAnotherPlaceAreInTheWay(t *testing.T) {
	for name, pair := range map[string][2]locks.Path{"below": {at("a"), at("a", "b")}, "above": {at("a", "b"), at("a")}} {
		t.Run(name, func(t *testing.T) {
			table := open(t, kvtest.Open(t))
			held, err := table.Acquire(t.Context(), slots(ann, 2, pair[0]))
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			_, err = table.Acquire(ctx, slots(bob, 2, pair[1]))
			var denied *locks.DeniedError
			require.ErrorAs(t, err, &denied)
			assert.Equal(t, held.Token, denied.Holders[0].Token)
		})
	}
}

// Two requests that disagree on the number of slots of a place keep each other out: neither gets more company than it asked for.
func TestDifferentNumbersOfSlotsExcludeEachOther(t *testing.T) {
	table := open(t, kvtest.Open(t))
	held, err := table.Acquire(t.Context(), slots(ann, 3, at("a")))
	require.NoError(t, err)
	for _, n := range []int{2, 12, 30} {
		_, err = table.Acquire(t.Context(), slots(bob, n, at("a")))
		var denied *locks.DeniedError
		require.ErrorAs(t, err, &denied, "%d slots", n)
	}
	second, err := table.Acquire(t.Context(), slots(bob, 3, at("a")))
	require.NoError(t, err)
	assert.Equal(t, 1, second.Slot)
	require.NoError(t, table.Release(t.Context(), held.ID, ann.ID))
	require.NoError(t, table.Release(t.Context(), second.ID, bob.ID))
	third, err := table.Acquire(t.Context(), slots(eve, 2, at("a")))
	require.NoError(t, err)
	require.NoError(t, table.Release(t.Context(), third.ID, eve.ID))
}
