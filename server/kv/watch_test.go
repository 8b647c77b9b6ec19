package kv_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
)

var errEnough = errors.New("enough")

// watchUntil collects the changes that a watch delivers, up to a change of the key last.
func watchUntil(ctx context.Context, s *kv.Store, prefix string, after int64, last string) (seen []string, err error) {
	err = s.Watch(ctx, prefix, after, func(changes []kv.Change) error {
		for _, c := range changes {
			word := "put"
			switch {
			case c.Deleted:
				word = "delete"
			case c.New():
				word = "new"
			}
			seen = append(seen, fmt.Sprintf("%s %s %d", word, c.Key, c.Modified))
			if c.Key == last {
				return errEnough
			}
		}
		return nil
	})
	return seen, err
}

func TestWatchBeginsAfterARevision(t *testing.T) {
	everyWay(t, func(t *testing.T, s *kv.Store) {
		first := put(t, s, "w/a", "1")
		put(t, s, "w/a", "2")
		put(t, s, "other", "")
		remove(t, s, "w/a")
		put(t, s, "w/end", "")
		seen, err := watchUntil(t.Context(), s, "w/", first, "w/end")
		require.ErrorIs(t, err, errEnough)
		assert.Equal(t, []string{
			fmt.Sprintf("put w/a %d", first+1),
			fmt.Sprintf("delete w/a %d", first+3),
			fmt.Sprintf("new w/end %d", first+4),
		}, seen)
	})
}

func TestWatchSaysWhatIsCompacted(t *testing.T) {
	everyWay(t, func(t *testing.T, s *kv.Store) {
		first := put(t, s, "w/a", "1")
		last := put(t, s, "w/a", "2")
		require.NoError(t, s.Compact(t.Context(), last))
		_, err := watchUntil(t.Context(), s, "w/", first-1, "w/a")
		assert.ErrorIs(t, err, kv.ErrCompacted)
		seen, err := watchUntil(t.Context(), s, "w/", last-1, "w/a")
		assert.ErrorIs(t, err, errEnough)
		assert.Len(t, seen, 1)
	})
}

func TestWatchEndsWithItsContext(t *testing.T) {
	everyWay(t, func(t *testing.T, s *kv.Store) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		assert.ErrorIs(t, s.Watch(ctx, "w/", 0, func([]kv.Change) error { return nil }), context.Canceled)
	})
}

func TestWatchResumesWhereItWas(t *testing.T) {
	t.Parallel()
	dir := kvtest.Dir(t)
	server := kvtest.OpenIn(t, dir)
	s := kvtest.Again(t, server)

	var seen []int64
	arrived := make(chan struct{}, 100)
	watched := make(chan error, 1)
	go func() {
		watched <- s.Watch(t.Context(), "w/", 0, func(changes []kv.Change) error {
			for _, c := range changes {
				seen = append(seen, c.Modified)
				arrived <- struct{}{}
				if c.Key == "w/end" {
					return errEnough
				}
			}
			return nil
		})
	}()
	var want []int64
	for range 2 {
		for range 5 {
			want = append(want, put(t, server, "w/k", ""))
		}
		for range 5 {
			<-arrived
		}
		require.NoError(t, server.Close())
		server = kvtest.OpenIn(t, dir)
	}
	want = append(want, put(t, server, "w/end", ""))
	require.ErrorIs(t, <-watched, errEnough)
	assert.Equal(t, want, seen, "each once, in order, across restarts")
}
