package kv_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
)

// A keptChange is a change that a test has made: the value that the key has since the revision, "" if none.
type keptChange struct {
	revision   int64
	key, value string
}

// change puts and removes keys and compacts the history now and then, until ctx ends. It returns the changes.
func change(ctx context.Context, t *testing.T, s *kv.Store) (kept []keptChange) {
	for i := 0; ctx.Err() == nil; i++ {
		c := keptChange{key: fmt.Sprintf("r/%02d", i*7%80), value: fmt.Sprint(i)}
		op := kv.Put(c.key, []byte(c.value))
		if i%3 == 0 {
			c.value, op = "", kv.Delete(c.key)
		}
		result, err := s.Commit(t.Context(), kv.Txn{Then: []kv.Op{op}})
		if !assert.NoError(t, err) {
			return kept
		}
		c.revision = result.Revision
		kept = append(kept, c)
		if i%10 == 0 {
			assert.NoError(t, s.Compact(t.Context(), c.revision))
		}
	}
	return kept
}

var errRead = errors.New("all keys have been read")

// While keys are read in pages of three, others change, and the history is compacted. The result is the state of its revision, except that a
// key may be missing if it was removed later.
func TestReadWatchedDuringChangesAndCompactions(t *testing.T) {
	everyWay(t, func(t *testing.T, s *kv.Store) {
		ctx, stop := context.WithCancel(t.Context())
		var kept []keptChange
		var changing sync.WaitGroup
		changing.Go(func() { kept = change(ctx, t, s) })
		read := map[int64][]kv.Entry{}
		for len(read) < 10 {
			err := s.ReadWatched(t.Context(), "r/", 3, func(list []kv.Entry, revision int64) { read[revision] = list }, func([]kv.Change) error { return errRead })
			if !errors.Is(err, errRead) {
				assert.ErrorIs(t, err, kv.ErrCompacted, "the watch was slower than the compactions")
			}
		}
		stop()
		changing.Wait()

		for revision, list := range read {
			require.True(t, slices.IsSortedFunc(list, func(a, b kv.Entry) int { return strings.Compare(a.Key, b.Key) }))
			values, later := map[string]string{}, map[string]bool{}
			for _, c := range kept {
				if c.revision <= revision {
					values[c.key] = c.value
				} else if c.value == "" {
					later[c.key] = true
				}
			}
			for _, e := range list {
				assert.Equal(t, values[e.Key], string(e.Value), "%s at %d", e.Key, revision)
				delete(values, e.Key)
			}
			for key, value := range values {
				assert.True(t, value == "" || later[key], "%s is missing at %d", key, revision)
			}
		}
	})
}
