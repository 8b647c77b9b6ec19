package locks_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
	"github.com/holdfast-dev/holdfast/server/locks"
)

// A client gives up its acquisition. It knows neither whether the grant was made nor on which server.
func TestGivingUpEndsAnAcquisitionInEveryState(t *testing.T) {
	store := kvtest.Open(t)
	table, other := open(t, store), open(t, kvtest.Again(t, store))
	for name, r := range map[string]locks.Request{
		"exclusive": {Paths: []locks.Path{at("p")}},
		"several":   {Paths: []locks.Path{at("p"), at("q")}},
		"shared":    {Paths: []locks.Path{at("p")}, Mode: locks.Shared},
		"slots":     {Paths: []locks.Path{at("p")}, Slots: 2},
	} {
		r.Holder, r.TTL = bob, long
		t.Run("granted "+name, func(t *testing.T) {
			r.Ticket = "granted-" + name
			_, err := table.Acquire(t.Context(), r)
			require.NoError(t, err)
			require.NoError(t, other.GiveUp(t.Context(), bob.ID, r.Ticket), "by another server")
			assertNobody(t, table)
			_, err = table.Acquire(t.Context(), r)
			require.ErrorIs(t, err, locks.ErrGivenUp, "a copy of the request arrives late")
			require.NoError(t, other.GiveUp(t.Context(), bob.ID, r.Ticket), "twice")
		})
		t.Run("waiting "+name, func(t *testing.T) {
			r.Ticket = "waiting-" + name
			givesUpWaiting(t, table, other, r)
			assertNobody(t, table)
		})
		t.Run("under way "+name, func(t *testing.T) {
			r.Ticket = "early-" + name
			require.NoError(t, table.GiveUp(t.Context(), bob.ID, r.Ticket))
			for _, r.Wait = range []time.Duration{0, long} {
				_, err := other.Acquire(t.Context(), r)
				require.ErrorIs(t, err, locks.ErrGivenUp)
			}
			r.Wait = 0
			assertNobody(t, table)
		})
		t.Run("released "+name, func(t *testing.T) {
			r.Ticket = "released-" + name
			lease, err := table.Acquire(t.Context(), r)
			require.NoError(t, err)
			require.NoError(t, table.Release(t.Context(), lease.ID, bob.ID))
			_, err = other.Acquire(t.Context(), r)
			require.ErrorIs(t, err, locks.ErrGivenUp, "a copy of the request arrives late")
			assertNobody(t, table)
		})
	}
	var wrong *locks.InvalidError
	assert.ErrorAs(t, table.GiveUp(t.Context(), bob.ID, ""), &wrong)
	assert.ErrorAs(t, table.GiveUp(t.Context(), bob.ID, "a/b"), &wrong)
}

// givesUpWaiting ends a request that waits behind Ann, and before Eve. Eve gets the lock, and releases it.
func givesUpWaiting(t *testing.T, table, other *locks.Table, r locks.Request) {
	t.Helper()
	held, err := table.Acquire(t.Context(), want(ann, at("p")))
	require.NoError(t, err)
	outcomes := make(chan outcome, 2)
	queue(t, table, outcomes, r, 1)
	queue(t, table, outcomes, want(eve, at("p")), 2)
	require.NoError(t, other.GiveUp(t.Context(), bob.ID, r.Ticket))
	require.ErrorIs(t, (<-outcomes).err, locks.ErrGivenUp)
	require.NoError(t, table.Release(t.Context(), held.ID, ann.ID))
	next := <-outcomes
	require.NoError(t, next.err)
	require.Equal(t, eve.Name, next.who)
	require.NoError(t, table.Release(t.Context(), next.lease.ID, eve.ID))
}

func assertNobody(t *testing.T, table *locks.Table) {
	t.Helper()
	leases, waiters, err := table.Inspect(t.Context(), at("p"))
	require.NoError(t, err)
	require.Empty(t, leases)
	require.Empty(t, waiters)
}

// The request and its withdrawal arrive at the same moment, at two servers, in either order.
func TestGivingUpRacesTheGrant(t *testing.T) {
	store := kvtest.Open(t)
	table, other := open(t, store), open(t, kvtest.Again(t, store))
	for i := range 60 {
		r := ticket(bob, strings.Repeat("x", i+1), at("p"))
		if i%2 == 1 {
			r.Wait = long
		}
		done := make(chan error, 1)
		go func() {
			_, err := table.Acquire(context.Background(), r)
			done <- err
		}()
		time.Sleep(time.Duration(i%10) * 300 * time.Microsecond) // the race is the test; each order has the same result
		require.NoError(t, other.GiveUp(t.Context(), bob.ID, r.Ticket))
		if err := <-done; err != nil {
			require.ErrorIs(t, err, locks.ErrGivenUp)
		}
		leases, waiters, err := other.Inspect(t.Context(), at("p"))
		require.NoError(t, err)
		require.Empty(t, leases)
		require.Empty(t, waiters)
	}
}

func exact(name string, paths ...locks.Path) locks.Request {
	r := ticket(bob, name, paths...)
	r.Exact, r.Again = true, true
	return r
}

// A tab finds a lease that another tab of its browser left, and ends only that one.
func TestRequestReplacesOnlyTheLeaseThatItNames(t *testing.T) {
	table := open(t, kvtest.Open(t))
	left, err := table.Acquire(t.Context(), exact("one", at("p")))
	require.NoError(t, err)
	for _, wait := range []time.Duration{0, long} {
		r := exact("two", at("p"))
		r.Wait = wait
		_, err = table.Acquire(t.Context(), r)
		var found *locks.LeftError
		require.ErrorAs(t, err, &found, "at once, also where it would wait")
		require.Equal(t, []int64{left.Token}, found.Tokens)
	}
	named := exact("two", at("p"))
	named.Replace = []int64{left.Token}
	second, err := table.Acquire(t.Context(), named)
	require.NoError(t, err)
	require.Greater(t, second.Token, left.Token)

	// The request arrives again after the release of its lease, while a third tab has the lock.
	require.NoError(t, table.Release(t.Context(), second.ID, bob.ID))
	third, err := table.Acquire(t.Context(), exact("three", at("p")))
	require.NoError(t, err)
	_, err = table.Acquire(t.Context(), named)
	require.Error(t, err)
	late := exact("four", at("p")) // of a tab that gave up; the request reaches the server late
	late.Replace = []int64{left.Token, second.Token}
	_, err = table.Acquire(t.Context(), late)
	require.Error(t, err)
	fresh := ticket(bob, "old", at("p")) // of a page that does not know Exact
	fresh.Fresh = true
	_, err = table.Acquire(t.Context(), fresh)
	require.Error(t, err)
	_, err = table.Renew(t.Context(), third.ID, bob.ID)
	require.NoError(t, err, "the third tab has lost nothing")

	// A request cannot end another owner's lease by its token.
	steal := exact("two", at("p"))
	steal.Holder, steal.Replace = eve, []int64{third.Token}
	_, err = table.Acquire(t.Context(), steal)
	var denied *locks.DeniedError
	require.ErrorAs(t, err, &denied)
	_, err = table.Renew(t.Context(), third.ID, bob.ID)
	require.NoError(t, err)
}

// A replaced acquisition has ended: a late request for it gets nothing and does not wait.
func TestAReplacedAcquisitionIsOver(t *testing.T) {
	table := open(t, kvtest.Open(t))
	left, err := table.Acquire(t.Context(), exact("one", at("p")))
	require.NoError(t, err)
	r := exact("two", at("p"))
	r.Replace = []int64{left.Token}
	_, err = table.Acquire(t.Context(), r)
	require.NoError(t, err)
	late := exact("one", at("p"))
	late.Wait = long
	_, err = table.Acquire(t.Context(), late)
	require.True(t, errors.Is(err, locks.ErrGivenUp) || errors.As(err, new(*locks.LeftError)), "%v", err)
	_, waiters, err := table.Inspect(t.Context(), at("p"))
	require.NoError(t, err)
	require.Empty(t, waiters)
}

// A user requests in one tab the lock of another tab of the same browser, while another machine waits.
func TestTabHandsItsLockOverToAnotherTab(t *testing.T) {
	store := kvtest.Open(t)
	table, other := open(t, store), open(t, kvtest.Again(t, store))
	for i, near := range []*locks.Table{table, other} {
		for _, passes := range []bool{true, false} {
			name := func(tab string) string { return tab + strconv.Itoa(i) + strconv.FormatBool(passes) }
			place := at(name("p")) // a view that lags still shows the waiters of the place before
			held, err := table.Acquire(t.Context(), exact(name("one"), place))
			require.NoError(t, err)
			waiting := make(chan outcome, 1)
			queue(t, table, waiting, want(eve, place), 1)
			r := exact(name("two"), place)
			r.Replace, r.PassOn, r.Wait = []int64{held.Token}, passes, long
			second := make(chan outcome, 1)
			go func() {
				lease, err := near.Acquire(t.Context(), r)
				second <- outcome{bob.Name, lease, err}
			}()
			order := []chan outcome{second, waiting}
			if !passes {
				order = []chan outcome{waiting, second} // the other machine has waited longer
			}
			for _, next := range order {
				o := <-next
				require.NoError(t, o.err)
				require.NoError(t, table.Release(t.Context(), o.lease.ID, o.lease.Holder.ID))
			}
		}
	}
}
