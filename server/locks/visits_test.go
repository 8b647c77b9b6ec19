package locks

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
)

// A place that comes late is removed once, and a server remembers no request that has left it.
func TestVisitsAreForgotten(t *testing.T) {
	v, own := newVisits(), &ticket{}
	v.enter(own)
	v.enter(own) // it lost its place
	v.leave(own)
	assert.Empty(t, v.here)
	v.see(*own, kv.Entry{})
	require.Len(t, v.left(), 1)
	assert.Empty(t, v.left())
}

// A request that is granted after waiting leaves the server too.
func TestGrantedVisitIsForgotten(t *testing.T) {
	table := opened(t)
	held, _ := leased(t, table, "ann", time.Hour)
	r := Request{Paths: []Path{{"a"}}, Holder: Holder{ID: "bob"}, TTL: time.Hour, Wait: time.Minute}
	r.Queued = func() { go func() { assert.NoError(t, table.Release(t.Context(), held.ID, "ann")) }() }
	_, err := table.Acquire(t.Context(), r)
	require.NoError(t, err)
	assert.Empty(t, table.mirror.visits.here)
}

// A server notes its own grants only until its view shows them.
func TestShownGrantsAreNotNoted(t *testing.T) {
	table := opened(t)
	_, s := leased(t, table, "ann", time.Hour)
	require.NoError(t, table.catchUpTo(t.Context(), s.token))
	table.mirror.note(s.claim, s.token) // its commit is answered later than the watch shows it
	assert.Empty(t, table.mirror.granted)

	table.mirror.granted[s.key] = s // the watch has missed its end
	_, err := table.read(t.Context())
	require.NoError(t, err)
	assert.Empty(t, table.mirror.granted)
}

// A request comes again at another server, at the moment when this one acquires for the earlier request. This server has not seen that yet, and
// ends the earlier request at once.
func TestReplacedRequestEndsBeforeTheWatchShowsIt(t *testing.T) {
	table, store, _ := opensFaulty(t)
	other := openOver(t, store.Store)
	held, _ := leased(t, other, "ann", time.Hour)
	require.NoError(t, table.catchUpTo(t.Context(), held.Token))
	r := Request{Paths: []Path{{"a"}}, Holder: Holder{ID: "bob"}, TTL: time.Hour, Wait: 5 * time.Second, Ticket: "x"}
	var once sync.Once
	store.set(func(f *faulty) {
		f.before = func(txn kv.Txn) error {
			if txn.Apart == holderApart+"bob" {
				once.Do(func() {
					table.stopWatching()
					_, err := other.Acquire(t.Context(), r)
					assert.NoError(t, err)
				})
			}
			return nil
		}
	})
	earlier := r
	earlier.Queued = func() { go func() { assert.NoError(t, other.Release(t.Context(), held.ID, "ann")) }() }
	_, err := table.Acquire(t.Context(), earlier)
	require.ErrorIs(t, err, ErrReplaced)
}

// The store has lost the lease to which the stubs of places are bound. The next request gets a place under another lease.
func TestLostLeaseOfStubsIsReplaced(t *testing.T) {
	table := opened(t)
	held, _ := leased(t, table, "ann", time.Hour)
	require.NoError(t, table.catchUpTo(t.Context(), held.Token))
	r := Request{Paths: []Path{{"a"}}, Holder: Holder{ID: "bob"}, TTL: time.Hour, Wait: 10 * time.Second}
	stubs, err := table.stubs.lease(t.Context(), table.store, r.Wait+StubKept)
	require.NoError(t, err)
	require.NoError(t, stubs.Close(t.Context()))
	_, err = table.Acquire(t.Context(), r)
	require.ErrorIs(t, err, kv.ErrUnavailable)
	r.Queued = func() { go func() { assert.NoError(t, table.Release(t.Context(), held.ID, "ann")) }() }
	_, err = table.Acquire(t.Context(), r)
	require.NoError(t, err)
}

// The store has lost the lease of a server's places. A request that waits there takes its place again.
func TestLostPlaceIsTakenAgain(t *testing.T) {
	table := opened(t)
	held, _ := leased(t, table, "ann", time.Hour)
	joined := 0
	r := Request{Paths: []Path{{"a"}}, Holder: Holder{ID: "bob"}, TTL: time.Hour, Wait: time.Minute}
	r.Queued = func() {
		if joined++; joined == 1 {
			go func() { assert.NoError(t, table.lease.Close(t.Context())) }()
		} else {
			go func() { assert.NoError(t, table.Release(t.Context(), held.ID, "ann")) }()
		}
	}
	_, err := table.Acquire(t.Context(), r)
	require.NoError(t, err)
	assert.Equal(t, 2, joined)
}
