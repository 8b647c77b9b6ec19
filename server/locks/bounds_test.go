package locks

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
)

func bounded(t *testing.T, c Config) *Table {
	t.Helper()
	table, err := Open(t.Context(), kvtest.Open(t), c)
	require.NoError(t, err)
	t.Cleanup(table.Close)
	return table
}

// seen acquires a lease, which this server's view then shows.
func seen(t *testing.T, table *Table, r Request) Lease {
	t.Helper()
	lease, err := table.Acquire(t.Context(), r)
	require.NoError(t, err)
	require.NoError(t, table.catchUpTo(t.Context(), lease.Token))
	return lease
}

func ofAnn(holder string, paths ...Path) Request {
	return Request{Paths: paths, Holder: Holder{ID: holder}, User: "ann", UserLocks: 1, TTL: time.Hour}
}

// A further slot of a place is a further lease.
func TestSlotsCountForTheLimits(t *testing.T) {
	slots := func(r Request) Request { r.Slots = 5; return r }
	table := bounded(t, Config{})
	seen(t, table, slots(ofAnn("ann-1", Path{"a"})))
	_, err := table.Acquire(t.Context(), slots(ofAnn("ann-1", Path{"a"})))
	require.ErrorIs(t, err, ErrTooManyOfUser)

	table = bounded(t, Config{MaxHeld: 1})
	request := Request{Paths: []Path{{"a"}}, Slots: 5, Holder: Holder{ID: "ann-1"}, TTL: time.Hour}
	seen(t, table, request)
	_, err = table.Acquire(t.Context(), request)
	require.ErrorIs(t, err, ErrTooMany)
}

// Browsers with one secret share the limit of their holder, and ReleaseAll ends the leases of all of them.
func TestBrowsersOfOneHolderShareItsLimits(t *testing.T) {
	table := bounded(t, Config{MaxHeld: 1})
	request := Request{Paths: []Path{{"a"}}, Holder: Holder{ID: "ann"}, Browser: "one", TTL: time.Hour}
	seen(t, table, request)
	request.Paths, request.Browser = []Path{{"b"}}, "two"
	_, err := table.Acquire(t.Context(), request)
	require.ErrorIs(t, err, ErrTooMany)
	require.NoError(t, table.ReleaseAll(t.Context(), []string{"ann"}))
	require.NoError(t, table.catchUp(t.Context()))
	seen(t, table, request)
}

// A page of a user at the limit is loaded again. It gets the lock that the former page has left, at any of the paths and under any of the
// ids of its browser.
func TestAUserAtTheLimitReplacesALease(t *testing.T) {
	table := bounded(t, Config{})
	last := seen(t, table, ofAnn("ann-1", Path{"b"}))
	again := ofAnn("ann-2", Path{"a"}, Path{"b"})
	again.Former = []string{"ann-1"}
	again.Fresh = true
	next := seen(t, table, again)
	assert.Greater(t, next.Token, last.Token)

	again = ofAnn("ann-1", Path{"b", "c"})
	again.Former = []string{"ann-2"}
	again.Exact = true
	_, err := table.Acquire(t.Context(), again)
	var left *LeftError
	require.ErrorAs(t, err, &left)
	again.Replace = left.Tokens
	seen(t, table, again)
	_, err = table.Acquire(t.Context(), ofAnn("ann-1", Path{"d"}))
	require.ErrorIs(t, err, ErrTooManyOfUser)
}

// The connection of a waiter breaks, and no server notices. The client that asks again with the ticket is the same waiter.
func TestAWaiterThatComesAgainCountsOnce(t *testing.T) {
	table := bounded(t, Config{MaxWaiting: 1})
	seen(t, table, Request{Paths: []Path{{"a"}, {"b"}}, Holder: Holder{ID: "ann"}, TTL: time.Hour})
	ctx, leave := context.WithCancel(t.Context())
	wait := func(ticket, place string) (queued chan struct{}, outcome chan error) {
		queued, outcome = make(chan struct{}), make(chan error, 1)
		r := Request{Paths: []Path{{place}}, Holder: Holder{ID: "bob"}, TTL: time.Hour, Wait: time.Hour, Ticket: ticket}
		r.Queued = func() { close(queued) }
		go func() {
			_, err := table.Acquire(ctx, r)
			outcome <- err
		}()
		return queued, outcome
	}
	queued, first := wait("t", "a")
	<-queued
	require.NoError(t, table.catchUp(t.Context()))
	_, other := wait("u", "b")
	require.ErrorIs(t, <-other, ErrTooMany)
	queued, again := wait("t", "a")
	select {
	case <-queued:
	case err := <-again:
		require.NoError(t, err, "the waiter counts twice")
	}
	require.ErrorIs(t, <-first, ErrReplaced)
	leave()
	require.ErrorIs(t, <-again, context.Canceled)
}

// A user waits for more locks than it may hold. It gets as many as it may, one after the other.
func TestWaitersPassNoLimit(t *testing.T) {
	for name, config := range map[string]Config{"user": {}, "holder": {MaxHeld: 1}} {
		t.Run(name, func(t *testing.T) {
			table := bounded(t, config)
			held := map[string]Lease{}
			outcomes := map[string]chan error{"a": make(chan error, 1), "b": make(chan error, 1)}
			for place, outcome := range outcomes {
				held[place] = seen(t, table, Request{Paths: []Path{{place}}, Holder: Holder{ID: place}, TTL: time.Hour})
				r := ofAnn("ann-1", Path{place})
				if r.Wait = time.Hour; name == "holder" {
					r.User = ""
				}
				queued := make(chan struct{})
				r.Queued = func() { close(queued) }
				go func() {
					_, err := table.Acquire(t.Context(), r)
					outcome <- err
				}()
				<-queued
			}
			require.NoError(t, table.Release(t.Context(), held["a"].ID, "a"))
			require.NoError(t, <-outcomes["a"])
			require.NoError(t, table.catchUp(t.Context()))
			require.NoError(t, table.Release(t.Context(), held["b"].ID, "b"))
			require.ErrorIs(t, <-outcomes["b"], map[string]error{"user": ErrTooManyOfUser, "holder": ErrTooMany}[name])
		})
	}
}

// A lease on several places is one lease.
func TestPlacesOfALeaseCountOnce(t *testing.T) {
	table := bounded(t, Config{})
	wide := ofAnn("ann-1", Path{"a"}, Path{"b"}, Path{"c"})
	wide.UserLocks = 2
	lease := seen(t, table, wide)
	next := ofAnn("ann-2", Path{"d"})
	next.UserLocks = 2
	seen(t, table, next)
	require.NoError(t, table.Release(t.Context(), lease.ID, "ann-1"))
	seen(t, table, wide)
}
