package kv_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
)

// Many watches that begin and end, as those of clients that reconnect, do not keep another watch from receiving
// changes.
func TestAWatchGoesOnWhileManyOthersEnd(t *testing.T) {
	everyWay(t, func(t *testing.T, s *kv.Store) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		first := put(t, s, "w/first", "")
		told := make(chan string, 100)
		var working sync.WaitGroup
		working.Go(func() {
			_ = s.Watch(ctx, "w/", first, func(changes []kv.Change) error {
				for _, c := range changes {
					told <- c.Key
				}
				return nil
			})
		})
		for round := range 2 {
			crowd, disperse := context.WithCancel(ctx)
			var begun sync.WaitGroup
			for range 500 {
				begun.Add(1)
				working.Go(func() {
					once := sync.OnceFunc(begun.Done)
					_ = s.Watch(crowd, "w/first", first-1, func([]kv.Change) error { once(); return nil })
					once()
				})
			}
			begun.Wait()
			disperse()
			key := fmt.Sprint("w/", round)
			put(t, s, key, "")
			select {
			case got := <-told:
				require.Equal(t, key, got)
			case <-ctx.Done():
				require.Fail(t, "no watch gets changes any more", "round %d", round)
			}
		}
		cancel()
		working.Wait()
		assert.Empty(t, told)
	})
}
