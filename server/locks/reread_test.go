package locks

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
)

// This server reads the table again, because the store's history no longer has what its watch missed. Meanwhile another server grants
// an acquisition, and this server gives it up. The view that was read before the grant does not end the wait for the grant.
func TestGivingUpWhileTheTableIsReadAgain(t *testing.T) {
	store := kvtest.Open(t)
	table := openOver(t, store)
	table.stopWatching()
	other := openOver(t, kvtest.Again(t, store))

	early := table.mirror.load()
	revision, err := store.Each(t.Context(), prefix, readPage, func(entries []kv.Entry) error { early.add(entries, time.Now()); return nil })
	require.NoError(t, err)
	lease, err := other.Acquire(t.Context(), Request{Paths: []Path{{"a"}}, Holder: Holder{ID: "ann"}, TTL: time.Minute, Ticket: "x"})
	require.NoError(t, err)
	gaveUp := make(chan error, 1)
	go func() { gaveUp <- table.GiveUp(t.Context(), "ann", "x") }()
	require.Eventually(t, func() bool {
		table.mirror.mu.Lock()
		defer table.mirror.mu.Unlock()
		return len(table.mirror.notifiers.after) == 1
	}, 30*time.Second, time.Millisecond)
	table.mirror.take(early, revision, time.Now())
	_, err = table.read(t.Context())
	require.NoError(t, err)
	require.NoError(t, <-gaveUp)
	_, err = other.Renew(t.Context(), lease.ID, "ann")
	assert.ErrorIs(t, err, ErrNotFound, "the lease has ended")
}

// The clock of another server is behind. This server has seen when that one extended a lease, and still knows it after
// it has read the table again. So the lease does not end early.
func TestALeaseThatIsReadAgainKeepsItsTime(t *testing.T) {
	table := opened(t)
	_, s := leased(t, table, "ann", time.Hour)
	behind := time.Now().Add(-time.Minute)
	extended, err := table.store.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Put(s.beatKey(), encodeBeat(behind))}})
	require.NoError(t, err)
	require.NoError(t, table.catchUpTo(t.Context(), extended.Revision))
	due, _ := table.Due(time.Now())
	require.Empty(t, due)
	for range 2 {
		_, err = table.read(t.Context())
		require.NoError(t, err)
		due, _ = table.Due(time.Now())
		require.Empty(t, due, "it was extended a moment ago")
	}
	due, _ = table.Due(time.Now().Add(time.Hour))
	require.Len(t, due, 1)
}

// The watch of this server is interrupted for longer than the store's history. Meanwhile another server, whose clock is behind, extends one
// lease and grants another one. This server has not seen when, so neither ends before its time to live has passed from now on.
func TestALeaseThatWasExtendedUnseenKeepsItsTime(t *testing.T) {
	table := opened(t)
	_, s := leased(t, table, "ann", time.Hour)
	table.stopWatching()
	behind := time.Now().Add(-2 * time.Hour)
	granted := newClaim(Request{Paths: []Path{Document("new")}, Mode: Exclusive, Slots: 1, TTL: time.Hour, Holder: Holder{ID: "bob"}}, behind)
	_, err := table.store.Commit(t.Context(), kv.Txn{Then: []kv.Op{
		kv.Put(s.beatKey(), encodeBeat(behind.Add(time.Hour))),
		kv.Put(granted.beatKey(), encodeBeat(behind.Add(time.Hour))), kv.Put(granted.keys()[0], granted.encode()),
	}})
	require.NoError(t, err)
	_, err = table.read(t.Context())
	require.NoError(t, err)
	due, _ := table.Due(time.Now().Add(50 * time.Minute))
	require.Empty(t, due)
	due, _ = table.Due(time.Now().Add(time.Hour))
	require.Len(t, due, 2)
}

// A server that reads many leases again looks at each of them while requests go on, so before it locks its view.
func TestTheTimesAreKeptBeforeTheViewIsLocked(t *testing.T) {
	table := opened(t)
	_, s := leased(t, table, "ann", time.Hour)
	extended, err := table.store.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Put(s.beatKey(), encodeBeat(time.Now().Add(-time.Minute)))}})
	require.NoError(t, err)
	require.NoError(t, table.catchUpTo(t.Context(), extended.Revision))
	table.stopWatching()
	again := table.mirror.load()
	_, err = table.store.Each(t.Context(), prefix, readPage, func(entries []kv.Entry) error { again.add(entries, time.Now()); return nil })
	require.NoError(t, err)
	table.mirror.mu.Lock()
	defer table.mirror.mu.Unlock()
	again.prepare(table.mirror, time.Now())
	require.Len(t, again.due, 1)
	assert.Equal(t, table.mirror.due[0].deadline, again.due[0].deadline)
}
