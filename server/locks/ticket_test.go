package locks_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
	"github.com/holdfast-dev/holdfast/server/locks"
)

// broken makes a request wait with a ticket at the n-th place, until the request breaks.
func broken(t *testing.T, table *locks.Table, r locks.Request, n int) {
	t.Helper()
	ctx, cut := context.WithCancel(t.Context())
	defer cut()
	outcomes := make(chan outcome, 1)
	queueUntil(ctx, t, table, outcomes, r, n)
	cut()
	require.ErrorIs(t, (<-outcomes).err, context.Canceled)
}

func ticket(h locks.Holder, name string, paths ...locks.Path) locks.Request {
	r := want(h, paths...)
	r.Ticket = name
	return r
}

func TestATicketKeepsAPlace(t *testing.T) {
	store := kvtest.Open(t)
	table, other := open(t, store), open(t, kvtest.Again(t, store))
	p, q := at("p"), at("q", "r")
	held, err := table.Acquire(t.Context(), want(ann, p, q))
	require.NoError(t, err)

	broken(t, table, ticket(bob, "b", p, q), 1)
	outcomes := make(chan outcome, 2)
	queue(t, table, outcomes, want(eve, p), 1) // Bob's place blocks nobody
	queue(t, other, outcomes, ticket(bob, "b", p, q), 2)
	_, waiters, err := table.Inspect(t.Context(), p)
	require.NoError(t, err)
	assert.Equal(t, bob, waiters[0].Holder, "first again")

	require.NoError(t, table.Release(t.Context(), held.ID, ann.ID))
	first := <-outcomes
	require.NoError(t, first.err)
	assert.Equal(t, bob.Name, first.who)
	require.NoError(t, table.Release(t.Context(), first.lease.ID, bob.ID))
	second := <-outcomes
	require.NoError(t, second.err)
	require.NoError(t, table.Release(t.Context(), second.lease.ID, eve.ID))
	entries, _, err := store.Range(t.Context(), "locks/")
	require.NoError(t, err)
	entries = slices.DeleteFunc(entries, func(e kv.Entry) bool { return strings.HasPrefix(e.Key, "locks/gone/") })
	assert.Empty(t, entries, "the grant removes the place in the queue")
}

func TestTicketOfAnAbsentClientBlocksNobody(t *testing.T) {
	store := kvtest.Open(t)
	table := open(t, store)
	held, err := table.Acquire(t.Context(), want(ann, at("p")))
	require.NoError(t, err)
	broken(t, table, ticket(bob, "b", at("p")), 1)
	outcomes := make(chan outcome, 1)
	queue(t, table, outcomes, want(eve, at("p")), 1)
	require.NoError(t, table.Release(t.Context(), held.ID, ann.ID))
	o := <-outcomes
	require.NoError(t, o.err)
	require.NoError(t, table.Release(t.Context(), o.lease.ID, eve.ID))

	_, err = table.Acquire(t.Context(), ticket(bob, "b", at("p")))
	require.NoError(t, err)
	entries, _, err := store.Range(t.Context(), "locks/stub/")
	require.NoError(t, err)
	assert.Empty(t, entries, "a grant without waiting leaves no stub")
}

func TestATicketOutlastsItsWait(t *testing.T) {
	table := open(t, kvtest.Open(t))
	held, err := table.Acquire(t.Context(), want(ann, at("p")))
	require.NoError(t, err)
	r := ticket(bob, "b", at("p"))
	r.Wait = 2 * time.Second
	timedOut := make(chan error, 1)
	go func() {
		_, err := table.Acquire(t.Context(), r)
		timedOut <- err
	}()
	require.Eventually(t, func() bool {
		_, waiters, err := table.Inspect(t.Context(), at("p"))
		return err == nil && len(waiters) == 1
	}, 30*time.Second, time.Millisecond, "it has come into the line before its time is over")
	require.ErrorIs(t, <-timedOut, locks.ErrTimeout)
	outcomes := make(chan outcome, 2)
	queue(t, table, outcomes, want(eve, at("p")), 1)
	queue(t, table, outcomes, r, 2)
	require.NoError(t, table.Release(t.Context(), held.ID, ann.ID))
	assert.Equal(t, bob.Name, (<-outcomes).who)
}

// The server that has the request is killed, and its keys end. The client asks another server.
func TestATicketOutlastsItsServer(t *testing.T) {
	store := kvtest.Open(t)
	table := open(t, store)
	held, err := table.Acquire(t.Context(), want(ann, at("p")))
	require.NoError(t, err)
	dying := kvtest.Again(t, store)
	doomed, err := locks.Open(t.Context(), dying, locks.Config{InstanceTTL: time.Second})
	require.NoError(t, err)
	t.Cleanup(doomed.Close)
	unreceived, outcomes := make(chan outcome, 1), make(chan outcome, 2)
	queue(t, doomed, unreceived, ticket(bob, "b", at("p")), 1)
	queue(t, table, outcomes, want(eve, at("p")), 2)
	require.NoError(t, dying.Close()) // without a shutdown
	require.Eventually(t, func() bool {
		_, waiters, err := table.Inspect(t.Context(), at("p"))
		return err == nil && len(waiters) == 1
	}, 10*time.Second, 10*time.Millisecond)
	queue(t, table, outcomes, ticket(bob, "b", at("p")), 2)
	require.NoError(t, table.Release(t.Context(), held.ID, ann.ID))
	o := <-outcomes
	require.NoError(t, o.err)
	assert.Equal(t, bob.Name, o.who)
}

// The network lost the first request, and neither side knows: its server still waits.
func TestALaterRequestEndsTheEarlierOneWithItsTicket(t *testing.T) {
	store := kvtest.Open(t)
	tables := []*locks.Table{open(t, store), open(t, kvtest.Again(t, store))}
	for i, second := range tables {
		name := "b" + strconv.Itoa(i)
		held, err := tables[0].Acquire(t.Context(), want(ann, at("p")))
		require.NoError(t, err)
		former, later, others := make(chan outcome, 1), make(chan outcome, 1), make(chan outcome, 1)
		queue(t, tables[0], former, ticket(bob, name, at("p")), 1)
		queue(t, tables[0], others, want(eve, at("p")), 2)
		visit := func() int64 {
			stubs, _, err := store.Range(t.Context(), "locks/stub/"+bob.ID+"/"+name)
			require.NoError(t, err)
			require.Len(t, stubs, 1)
			return stubs[0].Modified
		}
		first := visit()
		queue(t, second, later, ticket(bob, name, at("p")), 2)
		require.Eventually(t, func() bool { return visit() > first }, 30*time.Second, time.Millisecond)
		again := visit()
		require.ErrorIs(t, (<-former).err, locks.ErrReplaced, "table %d", i)
		_, waiters, err := tables[0].Inspect(t.Context(), at("p"))
		require.NoError(t, err)
		require.Len(t, waiters, 2, "the end of the earlier request does not remove the place of the later one")
		require.Equal(t, again, visit(), "the earlier request did not take the place for a moment either")
		require.NoError(t, tables[0].Release(t.Context(), held.ID, ann.ID))
		o := <-later
		require.NoError(t, o.err)
		require.NoError(t, second.Release(t.Context(), o.lease.ID, bob.ID))
		e := <-others
		require.NoError(t, e.err)
		assert.Greater(t, e.lease.Token, o.lease.Token)
		require.NoError(t, tables[0].Release(t.Context(), e.lease.ID, eve.ID))
	}
}

func TestATicketIsForOneHolderAndOneLock(t *testing.T) {
	table := open(t, kvtest.Open(t))
	_, err := table.Acquire(t.Context(), want(ann, at("p")))
	require.NoError(t, err)
	broken(t, table, ticket(bob, "b", at("p")), 1)

	outcomes := make(chan outcome, 2)
	queue(t, table, outcomes, want(ann, at("p")), 1)
	queue(t, table, outcomes, ticket(eve, "b", at("p")), 2)
	_, waiters, err := table.Inspect(t.Context(), at("p"))
	require.NoError(t, err)
	assert.Equal(t, []locks.Holder{ann, eve}, []locks.Holder{waiters[0].Holder, waiters[1].Holder}, "Eve keeps her own place, not Bob's")

	for name, r := range map[string]locks.Request{
		"another path": ticket(bob, "b", at("p", "q")),
		"another mode": {Paths: []locks.Path{at("p")}, Mode: locks.Shared, Holder: bob, TTL: long, Ticket: "b"},
		"not a name":   ticket(bob, "a/b", at("p")),
		"long":         ticket(bob, string(make([]byte, 65)), at("p")),
	} {
		r.Wait = long
		var wrong *locks.InvalidError
		_, err := table.Acquire(t.Context(), r)
		assert.ErrorAs(t, err, &wrong, name)
	}
}

// Places whose clients do not come back expire.
func TestStubsRunOut(t *testing.T) {
	store := kvtest.Open(t)
	lease, err := store.Countdown(t.Context(), time.Second)
	require.NoError(t, err)
	_, err = store.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.PutBound("locks/stub/x", nil, lease)}})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		entries, _, err := store.Range(t.Context(), "locks/")
		return err == nil && len(entries) == 0
	}, 20*time.Second, 10*time.Millisecond)
}

// The answer with the grant was lost. The client asks again and gets the same lease instead of a new turn.
func TestATicketIsGrantedOnce(t *testing.T) {
	store := kvtest.Open(t)
	table, other := open(t, store), open(t, kvtest.Again(t, store))
	for name, r := range map[string]locks.Request{
		"exclusive": {Paths: []locks.Path{at("p")}},
		"fresh":     {Paths: []locks.Path{at("p")}, Fresh: true},
		"exact":     {Paths: []locks.Path{at("p")}, Exact: true},
		"shared":    {Paths: []locks.Path{at("p")}, Mode: locks.Shared},
		"slots":     {Paths: []locks.Path{at("p")}, Slots: 2},
	} {
		t.Run(name, func(t *testing.T) {
			r.Holder, r.TTL, r.Ticket = bob, long, name
			unreceived, err := table.Acquire(t.Context(), r)
			require.NoError(t, err)
			outcomes := make(chan outcome, 1)
			queue(t, table, outcomes, want(eve, at("p")), 1)
			for _, server := range []*locks.Table{table, other} {
				require.Eventually(t, func() bool {
					seen, _ := server.Due(time.Now().Add(2 * long))
					return len(seen) == 1 && strings.HasPrefix(unreceived.ID, seen[0].Lease+".")
				}, 30*time.Second, time.Millisecond)
				again, err := server.Acquire(t.Context(), r)
				require.NoError(t, err)
				assert.Equal(t, unreceived.ID, again.ID)
				assert.Equal(t, unreceived.Token, again.Token)
				assert.Greater(t, again.ExpiresAt, unreceived.ExpiresAt)
				assert.Equal(t, long, again.ExpiresAt.Sub(again.LockedAt), "a client computes the TTL from these times")
			}
			require.NoError(t, table.Release(t.Context(), unreceived.ID, bob.ID))
			o := <-outcomes
			require.NoError(t, o.err)
			require.NoError(t, table.Release(t.Context(), o.lease.ID, eve.ID))
		})
	}
}

// The grant seemed to reach nobody, but its client had asked again.
func TestAGrantIsWithdrawnUnlessItWasExtended(t *testing.T) {
	table := open(t, kvtest.Open(t))
	r := ticket(bob, "b", at("p"))
	received, err := table.Acquire(t.Context(), r)
	require.NoError(t, err)
	_, err = table.Acquire(t.Context(), r)
	require.NoError(t, err)
	require.NoError(t, table.Withdraw(t.Context(), received))
	_, err = table.Renew(t.Context(), received.ID, bob.ID)
	require.NoError(t, err)
	require.NoError(t, table.Release(t.Context(), received.ID, bob.ID))
	require.NoError(t, table.Withdraw(t.Context(), received), "it has ended")

	r = ticket(bob, "c", at("p"))
	unreceived, err := table.Acquire(t.Context(), r)
	require.NoError(t, err)
	require.NoError(t, table.Withdraw(t.Context(), unreceived))
	_, err = table.Renew(t.Context(), unreceived.ID, bob.ID)
	require.ErrorIs(t, err, locks.ErrNotFound)
}
