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
	_, former := leased(t, table, "ann", time.Minute)
	require.NoError(t, table.Release(t.Context(), former.publicID(), "ann"))
	_, present := leased(t, table, "bob", time.Minute)
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
	lease, s := leased(t, table, "ann", time.Minute)
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
