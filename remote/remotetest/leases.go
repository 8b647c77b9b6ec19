package remotetest

import (
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/remote"
)

func testLease(h *harness) {
	require.Zero(h, h.send(h.a, of("GET", 0)).Token)
	h.refused(h.send(h.a, of("PUT", 0)), 404, "lock_not_found")
	require.Equal(h, 200, h.send(h.a, of("DELETE", 0)).Status, "none is released")
	first := h.granted(h.a, named(lock("replace="), "t"))
	require.Equal(h, "t", first.Ticket)
	require.WithinDuration(h, first.LockedAt.Add(h.ttl), first.ExpiresAt, 50*time.Millisecond)
	shown := h.send(h.a, of("GET", 0))
	require.Equal(h, first.Token, shown.Token)
	require.True(h, shown.Mine)
	time.Sleep(20 * time.Millisecond)
	renewed := h.send(h.a, of("PUT", first.Token))
	require.Equal(h, 200, renewed.Status)
	require.True(h, renewed.ExpiresAt.After(first.ExpiresAt))
	h.refused(h.send(h.a, of("PUT", first.Token+1)), 409, "stale_token")
	h.refused(h.send(h.a, of("DELETE", first.Token+1)), 409, "stale_token")
	require.Equal(h, 200, h.send(h.a, of("DELETE", first.Token)).Status)
	require.Equal(h, 200, h.send(h.a, of("DELETE", first.Token)).Status, "twice")
	h.refused(h.send(h.a, of("PUT", first.Token)), 404, "lock_not_found")
	require.Greater(h, h.granted(h.b, lock()).Token, first.Token)
}

func testOthers(h *harness) {
	whole := h.granted(h.a, lock())
	shown := h.send(h.b, of("GET", 0))
	require.Equal(h, whole.Token, shown.Token)
	require.False(h, shown.Mine)
	for _, method := range []string{"PUT", "DELETE"} {
		h.refused(h.send(h.b, of(method, 0)), 403, "not_locked_by_user")
		h.refused(h.send(h.b, of(method, whole.Token)), 403, "not_locked_by_user")
	}
	require.Equal(h, 200, h.send(h.a, of("DELETE", whole.Token)).Status)
	place := h.granted(h.a, places("x"))
	for _, method := range []string{"PUT", "DELETE"} {
		h.refused(h.send(h.b, ofLease(method, place.Lease)), 403, "not_locked_by_user")
		require.Equal(h, 200, h.send(h.a, ofLease(method, place.Lease)).Status)
	}
	h.refused(h.send(h.a, ofLease("PUT", place.Lease)), 404, "lock_not_found")
	require.Equal(h, 200, h.send(h.a, ofLease("DELETE", place.Lease)).Status, "twice")
	require.Equal(h, 200, h.send(h.b, ofLease("DELETE", place.Lease)).Status, "of nobody now")
}

func testExpiry(h *harness) {
	began := time.Now()
	h.granted(h.a, lock())
	h.isGrant(h.send(h.b, waits(lock())))
	assert.GreaterOrEqual(h, time.Since(began), h.ttl)
	reply := h.send(h.a, of("PUT", 0))
	if reply.Status == 404 { // the next lease has ended as well
		h.refused(reply, 404, "lock_not_found")
		return
	}
	h.refused(reply, 403, "not_locked_by_user")
}

func testDenied(h *harness) {
	held := h.granted(h.a, lock())
	reply := h.send(h.b, lock())
	h.refused(reply, 409, "already_locked")
	require.False(h, reply.Mine)
	require.NotEmpty(h, reply.HolderName)
	reply = h.send(h.b, places("x"))
	h.refused(reply, 409, "acquire_denied")
	require.NotEmpty(h, reply.HolderName)
	h.refused(h.send(h.a, named(lock("replace="), "other")), 409, "left_behind")
	require.Equal(h, held.Token, h.granted(h.a, lock()).Token, "the holder's own repeat")
	h.begin(h.b, waits(lock()), 1)
	require.Equal(h, 200, h.send(h.a, of("DELETE", held.Token)).Status)
}

func testOrder(h *harness) {
	held := h.granted(h.a, lock())
	second, third := h.begin(h.b, waits(lock()), 1), h.begin(h.c, waits(places("x")), 2)
	require.Equal(h, 200, h.send(h.a, of("DELETE", held.Token)).Status)
	next := h.isGrant(h.answered(second))
	h.Waiting(h.T, 1)
	h.refused(h.send(h.a, places("x")), 409, "acquire_denied")
	require.Equal(h, 200, h.send(h.b, of("DELETE", next.Token)).Status)
	last := h.isGrant(h.answered(third))
	require.Greater(h, last.Token, next.Token)
	require.Equal(h, 200, h.send(h.c, ofLease("DELETE", last.Lease)).Status)
	h.free()
}

func testWaitEnds(h *harness) {
	h.granted(h.a, lock())
	began := time.Now()
	h.refused(h.send(h.b, lock("wait_ms=100")), 409, "already_locked")
	h.refused(h.send(h.b, with(places("x"), "wait_ms", int64(100))), 408, "acquire_timeout")
	assert.GreaterOrEqual(h, time.Since(began), 200*time.Millisecond)
}

// testModes takes each pair of requests, in two browsers and in one.
func testModes(h *harness) {
	shared := func(paths ...string) remote.Request { return with(places(paths...), "mode", "shared") }
	slots := func(n int, paths ...string) remote.Request { return with(places(paths...), "slots", n) }
	const x, y, xy, xAndY, sharedAll, sharedX, sharedXY, two, three, twoXY = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
	all := []remote.Request{lock(), places("x"), places("y"), places("x/y"), places("x", "y"), shared(""), shared("x"), shared("x/y"),
		slots(2, "x"), slots(3, "x"), slots(2, "x/y")}
	free := map[[2]int]bool{{x, y}: true, {y, xy}: true, {y, sharedX}: true, {y, sharedXY}: true, {y, two}: true, {y, three}: true, {y, twoXY}: true,
		{sharedX, sharedX}: true, {sharedX, sharedXY}: true, {sharedXY, sharedXY}: true, {two, two}: true, {three, three}: true, {twoXY, twoXY}: true,
		// Ancestors are shared, so a shared lock admits the locks below it.
		{xy, sharedX}: true, {twoXY, sharedX}: true}
	for _, below := range []int{x, y, xy, xAndY, sharedAll, sharedX, sharedXY, two, three, twoXY} {
		free[[2]int{below, sharedAll}] = true
	}
	for i, first := range all {
		for j, second := range all {
			held := h.granted(h.a, first)
			reply := h.send(h.b, second)
			if free[[2]int{i, j}] || free[[2]int{j, i}] {
				h.isGrant(reply)
				h.release(h.b, second, reply)
			} else {
				require.Equal(h, 409, reply.Status, "%v, then %v", first, second)
			}
			h.release(h.a, first, held)
		}
	}
}

func (h *harness) release(s remote.Server, r remote.Request, reply remote.Reply) {
	h.Helper()
	back := of("DELETE", reply.Token)
	if r.Path == locksPath {
		back = ofLease("DELETE", reply.Lease)
	}
	require.Equal(h, 200, h.send(s, back).Status)
}

func testSlots(h *harness) {
	pool := with(places("x"), "slots", 2)
	one, two := h.granted(h.a, pool), h.granted(h.b, pool)
	require.ElementsMatch(h, []int{0, 1}, []int{one.Slot, two.Slot})
	h.refused(h.send(h.c, pool), 409, "acquire_denied")
	waiting := h.begin(h.c, waits(pool), 1)
	h.refused(h.send(h.a, pool), 409, "acquire_denied")
	h.release(h.b, pool, two)
	three := h.isGrant(h.answered(waiting))
	require.Equal(h, two.Slot, three.Slot)
	h.release(h.a, pool, one)
	h.release(h.c, pool, three)
	h.free()
}
