package rooms

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/memory"
)

// tableOf returns a table with rooms that have the given numbers of participants.
func tableOf(t *testing.T, link memory.Link, rooms map[string]int) *table {
	store := memory.New().Client(link)
	t.Cleanup(func() { assert.NoError(t, store.Close()) })
	for id, size := range rooms {
		now := room{ID: id}
		for i := range size {
			now.Participants = append(now.Participants, participant{Token: fmt.Sprint(i), Name: "a name of some length"})
		}
		data, err := now.encode()
		require.NoError(t, err)
		_, err = store.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Put(roomPrefix+id, data)}})
		require.NoError(t, err)
	}
	return &table{instance: "i", queue: queue{store: store, now: time.Now, limit: time.Minute, waiting: map[string][]*job{}, conflict: func() {}}}
}

// Several large rooms change again and again at once. Their states together take no more of the server than those of one. A small room goes
// on meanwhile.
func TestLargeRoomsShareTheServer(t *testing.T) {
	const large, changes = 10, 20
	synctest.Test(t, func(t *testing.T) {
		rooms := map[string]int{"small": 10}
		for i := range large {
			rooms[fmt.Sprint(i)] = 500
		}
		r := tableOf(t, nil, rooms)
		entry, _, err := r.store.Get(t.Context(), roomPrefix+"0")
		require.NoError(t, err)
		begun := time.Now()
		var changing sync.WaitGroup
		for i := range large {
			changing.Go(func() {
				for n := range changes {
					_, err := r.answer(t.Context(), fmt.Sprint(i), "0", fmt.Sprint(n))
					assert.NoError(t, err)
				}
			})
		}
		time.Sleep(50 * time.Millisecond)
		for n := range 20 {
			at := time.Now()
			_, err := r.answer(t.Context(), "small", "0", fmt.Sprint(n))
			require.NoError(t, err)
			assert.LessOrEqual(t, time.Since(at), commitPause)
		}
		changing.Wait()
		sentBytes := large * changes * len(entry.Value) * 500
		assert.Less(t, float64(sentBytes)/time.Since(begun).Seconds(), 1.3*sendRate, "bytes a second")
		r.workers.Wait()
	})
}

// Small rooms that change at the same time slow a large one down by nothing.
func TestSmallRoomsDoNotSlowALargeOne(t *testing.T) {
	const small = 30
	busy := func(context.Context, string) (before, after error) { time.Sleep(commitPause); return nil, nil }
	synctest.Test(t, func(t *testing.T) {
		rooms := map[string]int{"large": 500}
		for i := range small {
			rooms[fmt.Sprint(i)] = 10
		}
		r := tableOf(t, busy, rooms)
		answers := func() time.Duration {
			begun := time.Now()
			for n := range 20 {
				_, err := r.answer(t.Context(), "large", "0", fmt.Sprint(n))
				require.NoError(t, err)
				synctest.Wait()
			}
			return time.Since(begun)
		}
		alone := answers()
		var changing sync.WaitGroup
		end := time.Now().Add(3 * alone)
		for i := range small {
			changing.Go(func() {
				for n := 0; time.Now().Before(end); n++ {
					_, err := r.answer(t.Context(), fmt.Sprint(i), "0", fmt.Sprint(n))
					assert.NoError(t, err)
					time.Sleep(commitPause)
				}
			})
		}
		assert.Less(t, answers(), 2*alone)
		changing.Wait()
		r.workers.Wait()
	})
}

// One participant of a large room changes its answer again and again. Each state goes to everyone, so the changes wait while the states
// before are sent, and share the next one. The changes of a small room do not wait.
func TestChangesOfALargeRoomWaitForItsStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := tableOf(t, nil, map[string]int{"small": 10, "large": 500})
		answers := func(id string) time.Duration {
			begun := time.Now()
			for i := range 20 {
				_, err := r.answer(t.Context(), id, "0", fmt.Sprint(i))
				require.NoError(t, err)
				synctest.Wait() // otherwise the next answer may find the worker still there, and wait for a commitPause
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
