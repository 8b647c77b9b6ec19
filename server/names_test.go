package server

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/asks"
	"github.com/holdfast-dev/holdfast/server/blobs"
	"github.com/holdfast-dev/holdfast/server/content"
	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
	"github.com/holdfast-dev/holdfast/server/kv/memory"
	"github.com/holdfast-dev/holdfast/server/locks"
	"github.com/holdfast-dev/holdfast/server/recorded"
)

// A name that was locked and has no content leaves nothing, whether this run of the server or a former one has seen its end. One that
// has a content, or was locked again, keeps its events.
func TestUnusedNamesLeaveNothing(t *testing.T) {
	c := DefaultConfig()
	c.DataDir, c.Sweep = kvtest.Dir(t), time.Hour
	start := func() *Server {
		s, err := Start(t.Context(), c, nil)
		require.NoError(t, err)
		return s
	}
	s := start()
	lock := func(document string) locks.Lease {
		l, err := s.table.Acquire(t.Context(), locks.Request{Paths: []locks.Path{locks.Document(document)}, Holder: locks.Holder{ID: "ann"}, TTL: time.Hour})
		require.NoError(t, err)
		return l
	}
	unlock := func(l locks.Lease) { require.NoError(t, s.table.Release(t.Context(), l.ID, "ann")) }
	for i := range 100 {
		unlock(lock(fmt.Sprint("unused-", i)))
	}
	saved := lock("saved")
	files, err := blobs.OpenFiles(t.TempDir())
	require.NoError(t, err)
	contents := content.New(content.Config{KV: s.store, Locks: s.table, Blobs: files})
	_, err = contents.Write(t.Context(), "saved", content.Writer{Holder: "ann", Maker: "ann"}, saved.Token, content.Save{}, nil, []byte("x"))
	require.NoError(t, err)
	unlock(saved)
	unlock(lock("again"))
	again := lock("again")
	left := func() []string {
		keys, err := s.store.Keys(t.Context(), "events/")
		require.NoError(t, err)
		return keys
	}
	require.Len(t, left(), 102)
	require.NoError(t, s.names.tidy(t.Context(), time.Now()))
	require.Len(t, left(), 102, "clients may resume from an earlier revision")
	later := time.Now().Add(s.names.delay + time.Second)
	s.names.missed = nil
	require.NoError(t, s.names.tidy(t.Context(), later))
	assert.Equal(t, []string{"events/again", "events/saved"}, left())

	unlock(again)
	require.NoError(t, s.Close())
	s = start()
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	require.NoError(t, s.names.tidy(t.Context(), later.Add(time.Minute)))
	assert.Equal(t, []string{"events/saved"}, left())
}

// The lock of a document ends before the end of the question about it is stored: the last event of the name is that of the question.
func TestQuestionThatEndsAfterItsLockLeavesNothing(t *testing.T) {
	c := DefaultConfig()
	c.DataDir, c.Sweep = kvtest.Dir(t), time.Hour
	s, err := Start(t.Context(), c, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	request := locks.Request{Paths: []locks.Path{locks.Document("r")}, Holder: locks.Holder{ID: "ann"}, TTL: time.Hour}
	lease, err := s.table.Acquire(t.Context(), request)
	require.NoError(t, err)
	ctx, giveUp := context.WithCancel(t.Context())
	relay := s.relay(func(document string, a asks.Ask, ended asks.Outcome) []kv.Op {
		if ended == "" {
			giveUp()
		} else {
			assert.NoError(t, s.table.Release(t.Context(), lease.ID, "ann"))
		}
		return recorded.Ask(document, a, ended)
	})
	request.Holder.ID = "bob"
	_, err = relay.Ask(ctx, request, time.Minute)
	require.ErrorIs(t, err, context.Canceled)
	s.names.missed = nil
	require.NoError(t, s.names.tidy(t.Context(), time.Now().Add(s.names.delay+time.Second)))
	keys, err := s.store.Keys(t.Context(), "events/")
	require.NoError(t, err)
	assert.Empty(t, keys)
}

// The store does not answer for a moment when the events of a name are due. They are removed later.
func TestNamesThatCouldNotBeRemovedAreTriedAgain(t *testing.T) {
	away := false
	store := memory.New().Client(func(context.Context, string) (before, after error) {
		if away {
			return memory.ErrLost, nil
		}
		return nil, nil
	})
	t.Cleanup(func() { assert.NoError(t, store.Close()) })
	n := newNames(store, time.Minute)
	n.missed = nil
	for i := range 2 * namesAtOnce {
		result, err := store.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Put(fmt.Sprint("events/", i), nil)}})
		require.NoError(t, err)
		n.note(fmt.Sprint(i), result.Revision)
	}
	later := time.Now().Add(n.delay + time.Second)
	away = true
	require.Error(t, n.tidy(t.Context(), later))
	away = false
	require.NoError(t, n.tidy(t.Context(), later))
	left, err := store.Count(t.Context(), "events/")
	require.NoError(t, err)
	assert.Zero(t, left)
}

// More locks end than the server remembers until their names are due. It finds the others again, without a restart.
func TestUnusedNamesBeyondTheMemoryAreRemovedToo(t *testing.T) {
	defer func(n int) { maxEnded = n }(maxEnded)
	maxEnded = 3
	store := memory.New().Client(nil)
	t.Cleanup(func() { assert.NoError(t, store.Close()) })
	n := newNames(store, time.Minute)
	now := time.Now()
	require.NoError(t, n.tidy(t.Context(), now.Add(n.delay)))
	require.Empty(t, n.missed)
	for i := range 2 * maxEnded {
		result, err := store.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Put(fmt.Sprint("events/", i), nil)}})
		require.NoError(t, err)
		n.note(fmt.Sprint(i), result.Revision)
	}
	left := func(at time.Time) int {
		require.NoError(t, n.tidy(t.Context(), at))
		keys, err := store.Keys(t.Context(), "events/")
		require.NoError(t, err)
		return len(keys)
	}
	assert.Equal(t, 2*maxEnded, left(now.Add(n.delay/2)), "clients may resume from an earlier revision")
	later := time.Now().Add(n.delay + time.Second)
	assert.Equal(t, maxEnded-1, left(later), "the tidying deletes the keys up to the first one that it does not remember")
	assert.Zero(t, left(later))
	assert.Empty(t, n.missed)
}

// The store compacts its history while the server looks at all names, which takes minutes with a million documents. It looks at all of them.
func TestUnusedNamesOfALargeStoreLeaveNothing(t *testing.T) {
	store := kvtest.Open(t)
	for i := range 10 * namesAtOnce {
		_, err := store.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Put(fmt.Sprint("events/", i), nil)}})
		require.NoError(t, err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var compacting sync.WaitGroup
	compacting.Go(func() {
		for ctx.Err() == nil {
			_, revision, _ := store.Get(ctx, "events/")
			_ = store.Compact(ctx, revision)
		}
	})
	defer compacting.Wait()
	defer stop()
	n := newNames(store, time.Minute)
	require.NoError(t, n.tidy(t.Context(), time.Now().Add(n.delay)))
	left, err := store.Count(t.Context(), "events/")
	require.NoError(t, err)
	assert.Zero(t, left)
}
