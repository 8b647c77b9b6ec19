package locks

import (
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv/memory"
)

// A holder that does not know that its lease has ended sends a heartbeat at the same moment as its successor. Each
// gets the answer for its own lease, whichever comes first.
func TestHeartbeatsOfAFormerHolder(t *testing.T) {
	table := opened(t)
	_, former := leased(t, table, "ann", time.Minute)
	require.NoError(t, table.Release(t.Context(), former.publicID(), "ann"))
	_, present := leased(t, table, "bob", time.Minute)
	for _, order := range [][]storedLease{{former, present}, {present, former, present, former}} {
		var batch []heartbeat
		var answers []chan beatAnswer
		for _, s := range order {
			answer := make(chan beatAnswer, 1)
			answers = append(answers, answer)
			batch = append(batch, heartbeat{s, s.token, time.Now().Add(time.Minute), answer})
		}
		table.commitBatch(t.Context(), batch)
		for i, s := range order {
			a := <-answers[i]
			require.NoError(t, a.err)
			assert.Equal(t, s.Holder == "bob", a.held, "%s, number %d", s.Holder, i)
		}
	}
}

// Two heartbeats of one lease come together, with the later expiry first or last. The store keeps the later one.
func TestTwoHeartbeatsOfOneLease(t *testing.T) {
	table := opened(t)
	lease, s := leased(t, table, "ann", time.Minute)
	early, late := lease.ExpiresAt.Add(time.Second), lease.ExpiresAt.Add(2*time.Second)
	for _, order := range [][]time.Time{{early, late}, {late, early}} {
		answer := make(chan beatAnswer, 2)
		table.commitBatch(t.Context(), []heartbeat{{s, table.mirror.beatOf(s), order[0], answer}, {s, table.mirror.beatOf(s), order[1], answer}})
		for range order {
			assert.Equal(t, beatAnswer{held: true}, <-answer)
		}
		e, _, err := table.store.Get(t.Context(), s.beatKey())
		require.NoError(t, err)
		stored, ok := decodeBeat(e)
		require.True(t, ok)
		assert.Equal(t, late.UnixMilli(), stored.UnixMilli())
	}
}

// A heartbeat gets no answer and reaches the store seconds later, after a heartbeat that was made after it. A server that starts then, and
// knows only what is stored, does not end the lease before the time that its holder received.
func TestALateHeartbeatShortensNoLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memory.New()
		store, late, arrived := m.Delaying(10 * time.Second)
		table := openOver(t, store)
		lease, _ := leased(t, table, "ann", 30*time.Second)
		time.Sleep(time.Second)
		late.Store(true)
		_, err := table.Renew(t.Context(), lease.ID, "ann")
		require.Error(t, err)
		time.Sleep(8 * time.Second)
		until, err := table.Renew(t.Context(), lease.ID, "ann")
		require.NoError(t, err)
		<-arrived

		later := m.Client(nil)
		started := openOver(t, later)
		time.Sleep(time.Until(until) - time.Millisecond)
		_, err = started.Acquire(t.Context(), Request{Paths: lease.Paths, Holder: Holder{ID: "bob"}, TTL: time.Minute})
		require.ErrorAs(t, err, new(*DeniedError))
		time.Sleep(2 * time.Millisecond)
		_, err = started.Acquire(t.Context(), Request{Paths: lease.Paths, Holder: Holder{ID: "bob"}, TTL: time.Minute})
		require.NoError(t, err)
		started.Close()
		table.Close()
		assert.NoError(t, later.Close())
		assert.NoError(t, store.Close())
		m.Close()
	})
}

// A server has not seen the last heartbeat of a lease, which came through another one. Its own heartbeat extends the lease nevertheless.
func TestAHeartbeatAfterAnUnseenOne(t *testing.T) {
	table := opened(t)
	lease, s := leased(t, table, "ann", time.Minute)
	until := lease.ExpiresAt.Add(time.Second)
	for range 2 {
		answer := make(chan beatAnswer, 1)
		table.commitBatch(t.Context(), []heartbeat{{s, s.token, until, answer}})
		assert.Equal(t, beatAnswer{held: true}, <-answer)
		e, _, err := table.store.Get(t.Context(), s.beatKey())
		require.NoError(t, err)
		stored, ok := decodeBeat(e)
		require.True(t, ok)
		assert.Equal(t, lease.ExpiresAt.Add(time.Second).UnixMilli(), stored.UnixMilli(), "the later expiry stays")
		until = until.Add(-500 * time.Millisecond)
	}
}

// A client holds leases on the longest places and sends the heartbeats of all of them at once. They are too large for one transaction. The
// heartbeat of another holder, which arrives among them, succeeds.
func TestHeartbeatsOfLongPlacesFailNoOther(t *testing.T) {
	table := opened(t)
	_, mine := leased(t, table, "ann", time.Minute)
	all := []storedLease{mine}
	for i := range beatBatch {
		long := Path{strconv.Itoa(i)}
		for len(long) < maxDepth {
			long = append(long, strings.Repeat(" ", maxComponent))
		}
		lease, err := table.Acquire(t.Context(), Request{Paths: []Path{long}, Holder: Holder{ID: "eve"}, TTL: time.Minute})
		require.NoError(t, err)
		s, err := table.byID(t.Context(), lease.ID, "eve")
		require.NoError(t, err)
		all = append(all, s)
	}
	var answers []chan beatAnswer
	var late []heartbeat
	for _, s := range all {
		answer := make(chan beatAnswer, 1)
		answers, late = append(answers, answer), append(late, heartbeat{s, table.mirror.beatOf(s), time.Now().Add(time.Minute), answer})
	}
	table.heartbeats <- late[1] // the others arrive in the pause after it
	for _, h := range append(late[:1:1], late[2:]...) {
		table.heartbeats <- h
	}
	for i := range answers {
		assert.Equal(t, beatAnswer{held: true}, <-answers[i], "number %d", i)
	}
}
