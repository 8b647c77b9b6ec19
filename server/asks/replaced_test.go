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

// Somebody asks right after the refusal of another question, before its asker hears of it. The end of the refused question
// is recorded all the same.
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
