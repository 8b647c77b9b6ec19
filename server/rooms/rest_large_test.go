package rooms

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/memory"
)

// One participant of a large room changes its answer again and again. Each state goes to everyone, so the changes wait while the states
// before are sent, and share the next one. The changes of a small room do not wait.
func TestChangesOfALargeRoomWaitForItsStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New().Client(nil)
		t.Cleanup(func() { assert.NoError(t, store.Close()) })
		r := &table{instance: "i", queue: queue{store: store, now: time.Now, limit: time.Minute, waiting: map[string][]*job{}, conflict: func() {}}}
		for id, size := range map[string]int{"small": 10, "large": 500} {
			now := room{ID: id}
			for i := range size {
				now.Participants = append(now.Participants, participant{Token: fmt.Sprint(i), Name: "a name of some length"})
			}
			data, err := now.encode()
			require.NoError(t, err)
			_, err = store.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Put(roomPrefix+id, data)}})
			require.NoError(t, err)
		}
		answers := func(id string) time.Duration {
			begun := time.Now()
			for i := range 20 {
				_, err := r.answer(t.Context(), id, "0", fmt.Sprint(i))
				require.NoError(t, err)
				synctest.Wait() // otherwise the next answer may find the worker still there, and wait for a breath
			}
			return time.Since(begun)
		}
		assert.Zero(t, answers("small"))
		took := answers("large")
		assert.Greater(t, took, 200*time.Millisecond)
		assert.Less(t, took, 20*maxRest)

		revisions := make(chan int64, 20)
		for i := range cap(revisions) {
			go func() {
				revision, err := r.answer(t.Context(), "large", fmt.Sprint(i), "at once")
				assert.NoError(t, err)
				revisions <- revision
			}()
		}
		synctest.Wait()
		states := map[int64]bool{}
		for range cap(revisions) {
			states[<-revisions] = true
		}
		assert.LessOrEqual(t, len(states), 2)
		r.workers.Wait()
	})
}
