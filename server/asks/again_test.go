package asks

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv/memory"
	"github.com/holdfast-dev/holdfast/server/locks"
)

// The connection of an asker breaks, and its server does not notice. The asker asks again, with the same ticket: its own question does not
// count as that of somebody else. Its other tab, which has another ticket, does not come in between.
func TestAnAskerWhoseConnectionBrokeAsksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memory.New()
		store := shared.Client(nil)
		table := tableOver(t, store)
		ended := &ends{list: map[string]Outcome{}}
		relay := New(store, table, ended.record)
		request := func(holder, ticket string) locks.Request {
			return locks.Request{Paths: []locks.Path{locks.Document("r")}, Holder: locks.Holder{ID: holder}, Ticket: ticket, TTL: time.Hour}
		}
		held, err := table.Acquire(t.Context(), request("ann", ""))
		require.NoError(t, err)
		asks := func(ticket string) chan error {
			outcome := make(chan error, 1)
			go func() {
				_, err := relay.Ask(t.Context(), request("bob", ticket), grace)
				outcome <- err
			}()
			synctest.Wait()
			return outcome
		}
		broken := asks("t1")
		again := asks("t1")
		require.ErrorIs(t, <-asks("t2"), ErrBusy)
		require.ErrorIs(t, <-broken, locks.ErrReplaced)
		assert.Equal(t, map[string]Outcome{"bob": Cancelled}, ended.list)
		require.NoError(t, relay.Accept(t.Context(), Answer{Document: "r", Holder: "ann"}))
		require.NoError(t, table.Release(t.Context(), held.ID, "ann"))
		require.NoError(t, <-again)
	})
}
