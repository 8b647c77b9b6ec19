package asks

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv/memory"
	"github.com/holdfast-dev/holdfast/server/locks"
)

// A holder has two documents under one lock. A question about the second one is a question there, and is answered there.
func TestAQuestionAboutOneOfSeveralDocuments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New().Client(nil)
		table := tableOver(t, store)
		relay := New(store, table, nil)
		held, err := table.Acquire(t.Context(), locks.Request{
			Paths: []locks.Path{locks.Document("a"), locks.Document("b")}, Holder: locks.Holder{ID: "ann"}, TTL: time.Hour})
		require.NoError(t, err)
		outcome := make(chan error, 1)
		go func() {
			_, err := relay.Ask(t.Context(), locks.Request{Paths: []locks.Path{locks.Document("b")}, Holder: locks.Holder{ID: "bob"}, TTL: time.Hour}, grace)
			outcome <- err
		}()
		synctest.Wait()
		require.NoError(t, relay.Accept(t.Context(), Answer{Document: "b", Holder: "ann"}))
		require.NoError(t, table.Release(t.Context(), held.ID, "ann"))
		require.NoError(t, <-outcome)
	})
}

// The server of an asker dies while the question is open. Others may ask the holder soon.
func TestTheServerOfAnAskerDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := ask(t, 0)
		require.NoError(t, s.asker.Close())
		require.Error(t, <-s.outcome)
		time.Sleep(askTTL + time.Second)
		request := locks.Request{Paths: []locks.Path{locks.Document("r")}, Holder: locks.Holder{ID: "cleo"}, TTL: time.Hour}
		_, err := New(s.store, s.table, nil).Ask(t.Context(), request, grace)
		require.ErrorIs(t, err, ErrTimeout, "the holder is asked, and does not answer")
	})
}

// A question that waits for longer than its lease stays open.
func TestQuestionStaysOpenBeyondItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := ask(t, 0)
		require.NoError(t, s.answers.Accept(t.Context(), s.holder))
		time.Sleep(AcceptLimit - time.Millisecond)
		require.NoError(t, s.table.Release(t.Context(), s.lease.ID, "ann"))
		require.NoError(t, <-s.outcome)
	})
}
