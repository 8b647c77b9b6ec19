package locktest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/lock"
)

// testSlotCycle makes a waiter for one of two slots and their holders wait for each other. The one that closes the
// cycle gets deadlock, but not before both holders wait.
func testSlotCycle(g *treeHarness) {
	a, b, c := g.owner(), g.owner(), g.owner()
	pool := lock.AcquireOptions{Path: []string{"pool"}, Slots: 2}
	one, two, other := g.lease(g.ctx, a, pool), g.lease(g.ctx, b, pool), g.lease(g.ctx, c, at("q"))
	slot := g.queued(lock.Within(g.ctx, other), c, pool)
	time.Sleep(2 * time.Millisecond) // gives the acquisitions different ages
	first := g.queued(lock.Within(g.ctx, one), a, at("q"))
	g.stillWaits(slot)
	g.stillWaits(first)
	time.Sleep(2 * time.Millisecond)
	second := g.queued(lock.Within(g.ctx, two), b, at("q"))
	select {
	case err := <-second.err:
		require.ErrorIs(g, err, lock.ErrDeadlock)
	case <-g.ctx.Done():
		require.Fail(g, "no acquisition got the error of the deadlock")
	}
	g.stillWaits(slot)
	g.stillWaits(first)
	g.release(two)
	g.release(g.got(slot))
	g.release(other)
	g.release(g.got(first))
	g.release(one)
}
