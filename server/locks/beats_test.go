package locks

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A holder that does not know that its lease has ended sends a heartbeat at the same moment as its successor. Each
// gets the answer for its own lease, whichever comes first.
func TestHeartbeatsOfAFormerHolder(t *testing.T) {
	table := opened(t)
	held := func(holder string) storedLease {
		lease, err := table.Acquire(t.Context(), Request{Paths: []Path{{"a"}}, Holder: Holder{ID: holder}, TTL: time.Minute})
		require.NoError(t, err)
		s, err := table.byID(t.Context(), lease.ID, holder)
		require.NoError(t, err)
		return s
	}
	former := held("ann")
	require.NoError(t, table.Release(t.Context(), former.publicID(), "ann"))
	present := held("bob")
	for _, order := range [][]storedLease{{former, present}, {present, former, present, former}} {
		var batch []heartbeat
		var answers []chan beatAnswer
		for _, s := range order {
			answer := make(chan beatAnswer, 1)
			answers = append(answers, answer)
			batch = append(batch, heartbeat{s, time.Now().Add(time.Minute), answer})
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
	lease, err := table.Acquire(t.Context(), Request{Paths: []Path{{"a"}}, Holder: Holder{ID: "ann"}, TTL: time.Minute})
	require.NoError(t, err)
	s, err := table.byID(t.Context(), lease.ID, "ann")
	require.NoError(t, err)
	early, late := lease.ExpiresAt.Add(time.Second), lease.ExpiresAt.Add(2*time.Second)
	for _, order := range [][]time.Time{{early, late}, {late, early}} {
		answer := make(chan beatAnswer, 2)
		table.commitBatch(t.Context(), []heartbeat{{s, order[0], answer}, {s, order[1], answer}})
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
