package locks

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
)

// The store keeps its last space for the leases that exist, and for the requests that wait already. A place in the queue takes space, too, so
// nobody else gets one.
func TestNoFurtherWaitersWhenSpaceIsReserved(t *testing.T) {
	var reserved atomic.Bool
	table := bounded(t, Config{ReservedForLeases: reserved.Load})
	held := seen(t, table, Request{Paths: []Path{{"a"}}, Holder: Holder{ID: "ann"}, TTL: time.Hour})
	wait := func(ctx context.Context, holder string) (queued chan struct{}, outcome chan error) {
		queued, outcome = make(chan struct{}), make(chan error, 1)
		r := Request{Paths: []Path{{"a"}}, Holder: Holder{ID: holder}, TTL: time.Hour, Wait: time.Hour, Ticket: "t", Queued: func() { close(queued) }}
		go func() {
			_, err := table.Acquire(ctx, r)
			outcome <- err
		}()
		return queued, outcome
	}
	queued, _ := wait(t.Context(), "bob")
	<-queued
	require.NoError(t, table.catchUp(t.Context()))
	reserved.Store(true)

	queued, refused := wait(t.Context(), "cleo")
	select {
	case err := <-refused:
		require.ErrorIs(t, err, kv.ErrReserved)
	case <-queued:
		require.Fail(t, "a further waiter is in the queue")
	}
	_, err := table.Acquire(t.Context(), Request{Paths: []Path{{"a"}}, Holder: Holder{ID: "cleo"}, TTL: time.Hour, Wait: time.Second, First: true})
	require.ErrorIs(t, err, kv.ErrReserved, "this holds for a waiter that has asked the holder, too")
	_, err = table.Acquire(t.Context(), Request{Paths: []Path{{"a"}}, Holder: Holder{ID: "cleo"}, TTL: time.Hour})
	var denied *DeniedError
	require.ErrorAs(t, err, &denied, "without a place in the queue, the answer names the holder")

	queued, again := wait(t.Context(), "bob")
	<-queued
	require.NoError(t, table.Release(t.Context(), held.ID, "ann"))
	assert.NoError(t, <-again)
}

// A page is loaded again while the space that is left is for leases. It gets the lock that the former page has left: that lease ends.
func TestPageKeepsItsLockWhenSpaceIsReserved(t *testing.T) {
	var reserved atomic.Bool
	table := bounded(t, Config{ReservedForLeases: reserved.Load})
	r := Request{Paths: []Path{{"a"}}, Holder: Holder{ID: "ann"}, TTL: time.Hour, Exact: true}
	former := seen(t, table, r)
	reserved.Store(true)
	r.Replace = []int64{former.Token}
	next := seen(t, table, r)
	r.Replace, r.PassOn, r.Wait = []int64{next.Token}, true, time.Minute
	seen(t, table, r)
	r.Paths = []Path{{"b"}}
	_, err := table.Acquire(t.Context(), r)
	require.ErrorIs(t, err, kv.ErrReserved)
}

// A ticket that was given up is remembered, which takes space, too. A lease is given back by its ticket all the same.
func TestNoFurtherTicketsWhenSpaceIsReserved(t *testing.T) {
	var reserved atomic.Bool
	table := bounded(t, Config{ReservedForLeases: reserved.Load})
	seen(t, table, Request{Paths: []Path{{"a"}}, Holder: Holder{ID: "ann"}, TTL: time.Hour, Ticket: "held"})
	reserved.Store(true)
	require.ErrorIs(t, table.GiveUp(t.Context(), "ann", "new"), kv.ErrReserved)
	for range 2 { // the answer to the first request may be lost
		require.NoError(t, table.GiveUp(t.Context(), "ann", "held"))
	}
	reserved.Store(false)
	seen(t, table, Request{Paths: []Path{{"a"}}, Holder: Holder{ID: "bob"}, TTL: time.Hour})
}
