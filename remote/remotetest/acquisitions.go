package remotetest

import (
	"strconv"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/remote"
)

// kinds are requests for the document and for places below it.
func kinds() map[string]remote.Request {
	return map[string]remote.Request{
		"document": lock("replace="), "place": with(places("x"), "replace", []int64{}), "several": with(places("x", "y"), "replace", []int64{}),
		"shared": with(with(places("x"), "mode", "shared"), "replace", []int64{}), "slots": with(with(places("x"), "slots", 2), "replace", []int64{}),
	}
}

// replacing names the leases that a request replaces.
func replacing(r remote.Request, tokens ...int64) remote.Request {
	if r.Path == locksPath {
		return with(r, "replace", tokens)
	}
	r.Path = lockPath + "?replace="
	for i, token := range tokens {
		if i > 0 {
			r.Path += ","
		}
		r.Path += strconv.FormatInt(token, 10)
	}
	return r
}

func testGrantedOnce(h *harness) {
	for name, r := range kinds() {
		r = named(r, "once-"+name)
		first := h.granted(h.a, r)
		time.Sleep(20 * time.Millisecond)
		again := h.granted(h.a, r)
		require.Equal(h, first.Token, again.Token)
		require.Equal(h, first.Lease, again.Lease)
		require.True(h, again.ExpiresAt.After(first.ExpiresAt))
		assert.WithinDuration(h, again.LockedAt.Add(again.ExpiresAt.Sub(again.LockedAt)), again.ExpiresAt, 0)
		assert.InDelta(h, first.ExpiresAt.Sub(first.LockedAt), again.ExpiresAt.Sub(again.LockedAt), float64(50*time.Millisecond), "it tells how long a lease lasts")
		h.release(h.a, r, first)
	}
}

func testTicketKeepsPlace(h *harness) {
	for name, r := range kinds() {
		held := h.granted(h.c, lock())
		ticketed := waits(named(r, "kept-"+name))
		broken := h.begin(h.a, ticketed, 1)
		broken.stop()
		h.Waiting(h.T, 0)
		behind := h.begin(h.b, waits(lock()), 1)
		again := h.begin(h.a, ticketed, 2)
		h.release(h.c, lock(), held)
		first := h.isGrant(h.answered(again))
		h.release(h.a, r, first)
		h.release(h.b, lock(), h.isGrant(h.answered(behind)))
	}
}

func testReplacedRequest(h *harness) {
	for name, r := range kinds() {
		held := h.granted(h.c, lock())
		ticketed := waits(named(r, "later-"+name))
		earlier := h.begin(h.a, ticketed, 1)
		later := h.begin(h.a, ticketed, 1)
		h.refused(h.answered(earlier), 409, "replaced")
		h.release(h.c, lock(), held)
		h.release(h.a, r, h.isGrant(h.answered(later)))
	}
	h.free()
}

func testTicketForOneLock(h *harness) {
	held := h.granted(h.c, lock())
	waiting := h.begin(h.a, waits(named(places("x"), "t")), 1)
	h.refused(h.send(h.a, waits(named(places("y"), "t"))), 400, "invalid_request")
	other := h.begin(h.b, waits(named(places("y"), "t")), 2) // of another browser
	h.release(h.c, lock(), held)
	h.isGrant(h.answered(waiting))
	h.isGrant(h.answered(other))
	for _, bad := range []string{"a/b", "a b", "é"} {
		h.refused(h.send(h.c, named(places("z"), bad)), 400, "invalid_request")
	}
}

func testReleasedIsOver(h *harness) {
	for name, r := range kinds() {
		r = named(r, "over-"+name)
		h.release(h.a, r, h.granted(h.a, r))
		h.refused(h.send(h.a, r), 409, "given_up")
		h.refused(h.send(h.a, waits(r)), 409, "given_up")
		h.free()
		h.release(h.b, r, h.granted(h.b, r)) // of another browser
	}
}

func testGivingUp(h *harness) {
	for name, r := range kinds() {
		early, granted, waiting := named(r, "early-"+name), named(r, "granted-"+name), named(r, "waiting-"+name)
		require.Equal(h, 200, h.send(h.a, giveUp("early-"+name)).Status)
		h.refused(h.send(h.a, early), 409, "given_up")
		h.refused(h.send(h.a, waits(early)), 409, "given_up")

		h.granted(h.a, granted)
		require.Equal(h, 200, h.send(h.b, giveUp("granted-"+name)).Status, "it is another browser's")
		h.refused(h.send(h.b, lock()), 409, "already_locked")
		for range 2 {
			require.Equal(h, 200, h.send(h.a, giveUp("granted-"+name)).Status)
			h.free()
		}
		h.refused(h.send(h.a, granted), 409, "given_up")

		held := h.granted(h.c, lock())
		under := h.begin(h.a, waits(waiting), 1)
		require.Equal(h, 200, h.send(h.a, giveUp("waiting-"+name)).Status)
		h.refused(h.answered(under), 409, "given_up")
		h.Waiting(h.T, 0)
		h.release(h.c, lock(), held)
		h.free()
	}
	h.refused(h.send(h.a, giveUp("")), 400, "invalid_request")
}

// The browser of a first visit has no session yet: its request and its withdrawal could belong to two sessions.
func testFirstVisit(h *harness) {
	for name, r := range kinds() {
		for _, r := range []remote.Request{named(r, "first-"+name), waits(named(r, "waits-"+name))} {
			visitor := h.Visitor()
			h.refused(h.send(visitor, r), 409, "no_session")
			h.free()
			h.release(visitor, r, h.granted(visitor, r))
		}
		require.Equal(h, 200, h.send(h.Visitor(), giveUp("given-up-"+name)).Status)
		h.refused(h.send(h.Visitor(), named(r, "given-up-"+name)), 409, "no_session")
		h.free()
	}
	h.refused(h.send(h.Visitor(), asking("asks", time.Second)), 409, "no_session")
	h.granted(h.Visitor(), lock()) // without "replace" it says nothing about other tabs
}

func testLeftBehind(h *harness) {
	for name, r := range kinds() {
		if name == "slots" {
			continue // see testFresh
		}
		one, two := named(r, "one-"+name), "two-"+name
		left := h.granted(h.a, one)
		for _, ask := range []remote.Request{named(lock("replace="), two), waits(named(lock("replace="), two))} {
			reply := h.send(h.a, ask)
			h.refused(reply, 409, "left_behind")
			require.Equal(h, []int64{left.Token}, reply.Tokens)
		}
		h.refused(h.send(h.b, named(replacing(lock(), left.Token), two)), 409, "already_locked") // of another browser
		h.refused(h.send(h.a, named(replacing(lock(), left.Token+1), two)), 409, "left_behind")
		second := h.granted(h.a, named(replacing(lock(), left.Token), two))
		require.Greater(h, second.Token, left.Token)
		// Requests of the tab that is gone arrive late.
		reply := h.send(h.a, one)
		require.Equal(h, 409, reply.Status, "%+v", reply)
		require.Equal(h, 409, h.send(h.a, waits(one)).Status)
		require.Equal(h, second.Token, h.send(h.a, of("GET", 0)).Token)
		h.release(h.a, lock(), second)
		h.free()
	}
}

func testPassedOn(h *harness) {
	for i, passOn := range []bool{true, false} {
		left := h.granted(h.a, named(lock("replace="), "one-"+strconv.Itoa(i)))
		other := h.begin(h.b, waits(lock()), 1)
		r := waits(named(replacing(lock(), left.Token), "two-"+strconv.Itoa(i)))
		if passOn {
			r.Path += "&pass_on=true"
			second := h.granted(h.a, r)
			h.release(h.a, lock(), second)
			h.release(h.b, lock(), h.isGrant(h.answered(other)))
			continue
		}
		second := h.begin(h.a, r, 1)
		h.release(h.b, lock(), h.isGrant(h.answered(other)))
		h.release(h.a, lock(), h.isGrant(h.answered(second)))
	}
}

func testFresh(h *harness) {
	old := h.granted(h.a, lock())
	fresh := h.granted(h.a, lock("fresh=true"))
	require.Greater(h, fresh.Token, old.Token)
	h.refused(h.send(h.a, of("PUT", old.Token)), 409, "stale_token")
	h.refused(h.send(h.b, lock("fresh=true")), 409, "already_locked")
	h.release(h.a, lock(), fresh)

	exact := h.granted(h.a, named(lock("replace="), "t"))
	h.refused(h.send(h.a, lock("fresh=true")), 409, "already_locked")
	require.Equal(h, 200, h.send(h.a, of("PUT", exact.Token)).Status)
	h.release(h.a, lock(), exact)

	slot := h.granted(h.a, with(with(places("x"), "slots", 2), "replace", []int64{}))
	h.refused(h.send(h.a, named(with(places("x/y"), "replace", []int64{slot.Token}), "below")), 409, "acquire_denied")
	require.Equal(h, 200, h.send(h.a, ofLease("PUT", slot.Lease)).Status)
}

func testOrigins(h *harness) {
	one, two := h.Browser("A", "https://one.example"), h.Browser("A", "https://two.example")
	for i, other := range []remote.Server{two, h.a} {
		ticket := "first-" + strconv.Itoa(i)
		first := h.granted(one, named(lock("replace="), ticket))
		require.False(h, h.send(other, of("GET", 0)).Mine)
		for _, r := range []remote.Request{lock(), lock("fresh=true"), named(replacing(lock(), first.Token), "t")} {
			h.refused(h.send(other, r), 409, "already_locked")
		}
		for _, method := range []string{"PUT", "DELETE"} {
			h.refused(h.send(other, of(method, 0)), 403, "not_locked_by_user")
			h.refused(h.send(other, of(method, first.Token)), 403, "not_locked_by_user")
		}
		require.Equal(h, 200, h.send(other, giveUp(ticket)).Status)
		require.Equal(h, 200, h.send(one, of("PUT", first.Token)).Status)
		require.Equal(h, 200, h.send(one, giveUp(ticket)).Status)
		h.free()
		one, two = two, one
	}
}

func testBrowsersWithOneSecret(h *harness) {
	for name, r := range kinds() {
		if name == "slots" {
			continue // see testFresh
		}
		held := h.granted(h.a, inBrowser("one", named(r, "held-"+name)))
		second := inBrowser("two", named(lock("replace="), "second-"+name))
		h.refused(h.send(h.a, second), 409, "already_locked")
		h.refused(h.send(h.a, inBrowser("", named(lock("replace="), "old-"+name))), 409, "already_locked")
		waiter := h.begin(h.a, waits(second), 1)
		h.refused(h.send(h.a, inBrowser("one", named(lock("replace="), "next-"+name))), 409, "left_behind")
		h.release(h.a, r, held)
		h.release(h.a, lock(), h.isGrant(h.answered(waiter)))
		h.free()
	}
	held := h.granted(h.a, lock("browser=one"))
	h.refused(h.send(h.a, lock("fresh=true", "browser=two")), 409, "already_locked")
	h.release(h.a, lock(), held)
	for _, r := range []remote.Request{lock(), places("x")} {
		h.refused(h.send(h.a, inBrowser("a.b", r)), 400, "invalid_request")
	}
}
