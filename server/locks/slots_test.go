package locks_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
	"github.com/holdfast-dev/holdfast/server/kv/memory"
	"github.com/holdfast-dev/holdfast/server/locks"
)

func slots(h locks.Holder, n int, paths ...locks.Path) locks.Request {
	r := want(h, paths...)
	r.Slots = n
	return r
}

// Slots of a place above or below are not slots of this place: the request is refused at once.
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

// Two requests with different numbers of slots for a place exclude each other, so neither shares with more holders
// than it allows.
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

// A request that waits for one of several slots gets whichever is released first.
func TestAnyReleasedSlotWakesTheWaiter(t *testing.T) {
	table := open(t, kvtest.Open(t))
	for i := range 2 {
		var leases []locks.Lease
		for _, h := range []locks.Holder{ann, bob} {
			l, err := table.Acquire(t.Context(), slots(h, 2, at("a")))
			require.NoError(t, err)
			leases = append(leases, l)
		}
		outcomes := make(chan outcome, 1)
		queue(t, table, outcomes, slots(eve, 2, at("a")), 1)
		given := time.Now()
		require.NoError(t, table.Release(t.Context(), leases[i].ID, leases[i].Holder.ID))
		o := <-outcomes
		require.NoError(t, o.err)
		assert.Less(t, time.Since(given), locks.Backstop, "a notification came before the backstop")
		assert.Equal(t, leases[i].Slot, o.lease.Slot)
		require.NoError(t, table.Release(t.Context(), leases[1-i].ID, leases[1-i].Holder.ID))
		require.NoError(t, table.Release(t.Context(), o.lease.ID, eve.ID))
	}
}

// Ann and Bob have the two slots of a. Eve holds b and waits for a slot. Ann waits for b, Bob for nobody. When Bob
// releases, Eve continues, and there is no victim. When Bob waits for b too, he closes the cycle.
func TestAWaiterForOneOfSeveralSlotsWaitsForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memory.New()
		table := locks.OpenInMemory(t, m, m.Client(nil))
		for _, h := range []locks.Holder{ann, bob} {
			_, err := table.Acquire(t.Context(), slots(h, 2, at("a")))
			require.NoError(t, err)
		}
		b, err := table.Acquire(t.Context(), want(eve, at("b")))
		require.NoError(t, err)
		eves, anns := make(chan outcome, 1), make(chan outcome, 1)
		queue(t, table, eves, slots(eve, 2, at("a")), 1)
		queue(t, table, anns, want(ann, at("b")), 1)
		time.Sleep(2 * locks.Backstop)
		require.Empty(t, eves, "there is no cycle yet")
		require.Empty(t, anns, "there is no cycle yet")
		r := want(bob, at("b"))
		r.Wait = 20 * time.Second
		_, err = table.Acquire(t.Context(), r)
		require.ErrorIs(t, err, locks.ErrDeadlock)
		assert.Empty(t, anns)
		assert.Empty(t, eves)
		_, waiters, err := table.Inspect(t.Context(), at("a"))
		require.NoError(t, err)
		require.Len(t, waiters, 1)
		require.NoError(t, table.Release(t.Context(), b.ID, eve.ID))
		o := <-anns
		require.NoError(t, o.err)
	})
}
