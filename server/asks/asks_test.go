package asks

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/memory"
	"github.com/holdfast-dev/holdfast/server/locks"
)

const grace = time.Second

// A question and its holder. The asker's server learns of changes in the store after a delay.
type scene struct {
	store   *kv.Store
	asker   *kv.Store // of the asker's server
	table   *locks.Table
	holder  Answer
	answers *Relay
	lease   locks.Lease
	outcome chan error
	ended   *ends
	reads   atomic.Pointer[chan struct{}] // reads of the asker's server wait for it, and their answers are lost
}

// tableOver opens a table over a client of a store in memory, and closes both when the test ends.
func tableOver(t *testing.T, client *kv.Store) *locks.Table {
	t.Helper()
	table, err := locks.Open(t.Context(), client, locks.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { table.Close(); _ = client.Close() })
	return table
}

// ask has the lock of a document held, and asked for.
func ask(t *testing.T, delay time.Duration) *scene {
	t.Helper()
	shared := memory.New()
	s := &scene{outcome: make(chan error, 1), ended: &ends{list: map[string]Outcome{}}}
	member := func(delay time.Duration, reads *atomic.Pointer[chan struct{}]) (*kv.Store, *locks.Table) {
		store := shared.Client(func(_ context.Context, request string) (before, after error) {
			if request == "watch" {
				time.Sleep(delay)
			}
			if wait := reads.Load(); wait != nil && request == "range" {
				<-*wait
				return nil, memory.ErrLost
			}
			return nil, nil
		})
		return store, tableOver(t, store)
	}
	s.store, s.table = member(0, new(atomic.Pointer[chan struct{}]))
	request := locks.Request{Paths: []locks.Path{locks.Document("r")}, Holder: locks.Holder{ID: "ann"}, TTL: time.Hour}
	var err error
	s.lease, err = s.table.Acquire(t.Context(), request)
	require.NoError(t, err)
	s.holder, s.answers = Answer{Document: "r", Holder: "ann"}, New(s.store, s.table, nil)
	store, table := member(delay, &s.reads)
	s.asker = store
	request.Holder.ID = "bob"
	go func() {
		_, err := New(store, table, s.ended.record).Ask(t.Context(), request, grace)
		s.outcome <- err
	}()
	synctest.Wait()
	return s
}

// The holder accepts in time, but the asker's server learns of it later. The asker gets the lock.
func TestAcceptedAtTheLastMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := ask(t, 100*time.Millisecond)
		time.Sleep(grace - 10*time.Millisecond)
		require.NoError(t, s.answers.Accept(t.Context(), s.holder))
		time.Sleep(AcceptLimit - time.Second)
		require.Empty(t, s.outcome, "the asker still waits, because the holder saves")
		require.NoError(t, s.table.Release(t.Context(), s.lease.ID, "ann"))
		require.NoError(t, <-s.outcome)
	})
}

// The time for an answer ends, and this server looks into the store. Meanwhile it learns that the holder accepts, and then the answer of
// the store is lost. The asker waits on for the lock.
func TestAcceptedWhileTheEndOfTheGraceIsChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := ask(t, 0)
		time.Sleep(grace - time.Millisecond)
		looked := make(chan struct{})
		s.reads.Store(&looked)
		time.Sleep(2 * time.Millisecond)
		require.NoError(t, s.answers.Accept(t.Context(), s.holder))
		synctest.Wait()
		s.reads.Store(nil)
		close(looked)
		time.Sleep(AcceptLimit - time.Second)
		require.Empty(t, s.outcome, "the asker still waits, because the holder saves")
		require.NoError(t, s.table.Release(t.Context(), s.lease.ID, "ann"))
		require.NoError(t, <-s.outcome)
	})
}

// The holder accepts in time, and the asker's server learns of it later. When the time for an answer ends, the store does not answer for a
// moment. The asker gets the lock.
func TestAcceptedWhileTheStoreDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := ask(t, 100*time.Millisecond)
		time.Sleep(grace - 10*time.Millisecond)
		require.NoError(t, s.answers.Accept(t.Context(), s.holder))
		lost := make(chan struct{})
		close(lost)
		s.reads.Store(&lost)
		time.Sleep(20 * time.Millisecond)
		s.reads.Store(nil)
		time.Sleep(AcceptLimit - time.Second)
		require.Empty(t, s.outcome, "the asker still waits, because the holder saves")
		require.NoError(t, s.table.Release(t.Context(), s.lease.ID, "ann"))
		require.NoError(t, <-s.outcome)
	})
}

// A question that nobody answered is over, so a later answer is refused.
func TestAnswerAfterTheGraceIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := ask(t, 0)
		time.Sleep(grace + time.Millisecond)
		require.ErrorIs(t, s.answers.Accept(t.Context(), s.holder), ErrNotAsked)
		assert.ErrorIs(t, <-s.outcome, ErrTimeout)
	})
}

// A holder that accepted and does not release keeps the asker for AcceptLimit, no longer.
func TestAskerWaitsAcceptLimitForTheRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := ask(t, 0)
		require.NoError(t, s.answers.Accept(t.Context(), s.holder))
		began := time.Now()
		assert.ErrorIs(t, <-s.outcome, ErrTimeout)
		assert.Equal(t, AcceptLimit, time.Since(began))
	})
}
