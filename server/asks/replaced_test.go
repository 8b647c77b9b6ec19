package asks

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/locks"
)

// ends records the events that say how questions ended.
type ends struct {
	mu   sync.Mutex
	list map[string]Outcome
}

func (e *ends) record(_ string, a Ask, ended Outcome) []kv.Op {
	e.mu.Lock()
	defer e.mu.Unlock()
	if ended != "" {
		e.list[a.By.ID] = ended
	}
	return nil
}

// Somebody asks right after the refusal of another question, before its asker learns of it. The end of the refused question
// is recorded nevertheless.
func TestARefusedQuestionThatIsReplacedEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := ask(t, 100*time.Millisecond)
		require.NoError(t, s.answers.Refuse(t.Context(), s.holder, "no", false))
		ctx, stop := context.WithCancel(t.Context())
		request := locks.Request{Paths: []locks.Path{locks.Document("r")}, Holder: locks.Holder{ID: "cleo"}, TTL: time.Hour}
		cleo := make(chan error, 1)
		go func() {
			_, err := New(s.store, s.table, s.ended.record).Ask(ctx, request, grace)
			cleo <- err
		}()
		assert.ErrorAs(t, <-s.outcome, new(*RefusedError))
		stop()
		require.ErrorIs(t, <-cleo, context.Canceled)
		assert.Equal(t, map[string]Outcome{"bob": Refused, "cleo": Cancelled}, s.ended.list)
	})
}

// The lock ends after a question is stored and before its asker is in the queue, and somebody else gets the lock and is asked by a third one. The
// refusal is for that one alone: the first asker still gets the lock when it is released.
func TestTheAnswerToALaterQuestionIsForItsAskerAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := ask(t, 0)
		require.NoError(t, s.answers.Refuse(t.Context(), s.holder, "no", false))
		require.ErrorAs(t, <-s.outcome, new(*RefusedError))
		request := func(holder string) locks.Request {
			return locks.Request{Paths: []locks.Path{locks.Document("r")}, Holder: locks.Holder{ID: holder}, TTL: time.Hour}
		}
		early, err := s.answers.pose(t.Context(), request("bob"))
		require.NoError(t, err)
		require.NotEmpty(t, early.questions)
		require.NoError(t, s.table.Release(t.Context(), s.lease.ID, "ann"))
		held, err := s.table.Acquire(t.Context(), request("cleo"))
		require.NoError(t, err)
		outcomes := map[string]chan error{"bob": make(chan error, 1), "dan": make(chan error, 1)}
		go func() {
			_, err := s.answers.Ask(t.Context(), request("dan"), grace)
			outcomes["dan"] <- err
		}()
		synctest.Wait()
		go func() {
			_, cause, err := s.answers.await(t.Context(), request("bob"), early, grace)
			_, err = failure(t.Context(), cause, err)
			outcomes["bob"] <- err
		}()
		synctest.Wait()
		require.NoError(t, s.answers.Refuse(t.Context(), Answer{Document: "r", Holder: "cleo"}, "a secret for dan", false))
		require.ErrorAs(t, <-outcomes["dan"], new(*RefusedError))
		require.NoError(t, s.table.Release(t.Context(), held.ID, "cleo"))
		assert.NoError(t, <-outcomes["bob"])
	})
}
