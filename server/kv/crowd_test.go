package kv_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
)

// Many watches that begin and end, as those of clients that reconnect, do not keep another watch from receiving
// changes.
func TestAWatchGoesOnWhileManyOthersEnd(t *testing.T) {
	everyWay(t, func(t *testing.T, s *kv.Store) {
		ctx, cancel := context.WithCancel(t.Context())
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
			require.Equal(t, key, <-told)
		}
		cancel()
		working.Wait()
		assert.Empty(t, told)
	})
}
