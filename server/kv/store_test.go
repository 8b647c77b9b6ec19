package kv_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
)

// everyWay runs a test with both connections to a store: calls inside the process, and gRPC over the socket.
func everyWay(t *testing.T, test func(t *testing.T, s *kv.Store)) {
	t.Run("embedded", func(t *testing.T) { t.Parallel(); test(t, kvtest.Open(t)) })
	t.Run("external", func(t *testing.T) { t.Parallel(); test(t, kvtest.Again(t, kvtest.Open(t))) })
	t.Run("shared", func(t *testing.T) { t.Parallel(); test(t, kvtest.Sharing(t, kvtest.Open(t), "app")) })
}

func put(t *testing.T, s *kv.Store, key, value string) int64 {
	t.Helper()
	r, err := s.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Put(key, []byte(value))}})
	require.NoError(t, err)
	require.True(t, r.Held)
	return r.Revision
}

func remove(t *testing.T, s *kv.Store, key string) int64 {
	t.Helper()
	r, err := s.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Delete(key)}})
	require.NoError(t, err)
	return r.Revision
}

func TestReads(t *testing.T) {
	everyWay(t, func(t *testing.T, s *kv.Store) {
		missing, at, err := s.Get(t.Context(), "a/1")
		require.NoError(t, err)
		assert.False(t, missing.Found())

		created := put(t, s, "a/1", "one")
		assert.Equal(t, at+1, created)
		changed := put(t, s, "a/1", "uno")
		put(t, s, "a/2", "two")
		last := put(t, s, "b", "three")

		e, at, err := s.Get(t.Context(), "a/1")
		require.NoError(t, err)
		assert.Equal(t, last, at)
		assert.Equal(t, kv.Entry{Key: "a/1", Value: []byte("uno"), Created: created, Modified: changed}, e)

		list, _, err := s.Range(t.Context(), "a/")
		require.NoError(t, err)
		require.Len(t, list, 2)
		assert.Equal(t, []string{"a/1", "a/2"}, []string{list[0].Key, list[1].Key})

		old, err := s.GetAt(t.Context(), "a/1", created)
		require.NoError(t, err)
		assert.Equal(t, "one", string(old.Value))
		list, err = s.RangeAt(t.Context(), "a/", created)
		require.NoError(t, err)
		assert.Len(t, list, 1)

		require.NoError(t, s.Compact(t.Context(), last))
		_, err = s.GetAt(t.Context(), "a/1", created)
		assert.ErrorIs(t, err, kv.ErrCompacted)
		_, err = s.GetAt(t.Context(), "a/1", last+100)
		assert.Error(t, err)
		assert.NotErrorIs(t, err, kv.ErrUnavailable)
	})
}

func TestConditions(t *testing.T) {
	everyWay(t, func(t *testing.T, s *kv.Store) {
		put(t, s, "there", "1")
		there, _, err := s.Get(t.Context(), "there")
		require.NoError(t, err)
		newer := put(t, s, "there", "2")
		put(t, s, "dir/b", "")

		for name, c := range map[string]struct {
			cond kv.Cond
			want bool
		}{
			"absent":                     {kv.Absent("nothing"), true},
			"absent, but there":          {kv.Absent("there"), false},
			"exists":                     {kv.Exists("there"), true},
			"exists, but absent":         {kv.Exists("nothing"), false},
			"unchanged, but changed":     {kv.Unchanged(there), false},
			"changed at":                 {kv.ChangedAt("there", newer), true},
			"created at":                 {kv.CreatedAt("there", there.Created), true},
			"created at, another":        {kv.CreatedAt("there", newer), false},
			"created at 0, absent":       {kv.CreatedAt("nothing", 0), false},
			"none under":                 {kv.NoneUnder("nowhere/"), true},
			"none under, but one":        {kv.NoneUnder("dir/"), false},
			"none between, before it":    {kv.NoneBetween("dir/", "dir/b"), true},
			"none between, after it":     {kv.NoneBetween("dir/c", "dir0"), true},
			"none between, but the last": {kv.NoneBetween("dir/a", "dir/c"), false},
		} {
			r, err := s.Commit(t.Context(), kv.Txn{If: []kv.Cond{c.cond}})
			require.NoError(t, err, name)
			assert.Equal(t, c.want, r.Held, name)
		}
	})
}

// In a store with a prefix, a range without an end has only the keys of this store.
func TestARangeWithoutAnEndStaysUnderThePrefix(t *testing.T) {
	cluster := kvtest.Open(t)
	s := kvtest.Sharing(t, cluster, "app")
	put(t, cluster, "apq", "of others")
	r, err := s.Commit(t.Context(), kv.Txn{If: []kv.Cond{kv.NoneUnder("")}, Then: []kv.Op{kv.Put("a", nil), kv.ReadUnder("")}})
	require.NoError(t, err)
	require.True(t, r.Held)
	assert.Equal(t, [][]kv.Entry{{{Key: "a", Created: r.Revision, Modified: r.Revision}}}, r.Reads)
	_, err = s.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.DeleteUnder("")}})
	require.NoError(t, err)
	left, _, err := cluster.Range(t.Context(), "ap")
	require.NoError(t, err)
	require.Len(t, left, 1)
	assert.Equal(t, "apq", left[0].Key)
}

func TestCommitReadsAndDeletes(t *testing.T) {
	everyWay(t, func(t *testing.T, s *kv.Store) {
		put(t, s, "d/1", "x")
		put(t, s, "d/2", "y")
		r, err := s.Commit(t.Context(), kv.Txn{
			If:   []kv.Cond{kv.Absent("d/1")},
			Then: []kv.Op{kv.Put("d/1", nil)},
			Else: []kv.Op{kv.Read("d/1"), kv.Read("none"), kv.ReadUnder("d/")},
		})
		require.NoError(t, err)
		assert.False(t, r.Held)
		require.Len(t, r.Reads, 3)
		assert.Equal(t, "x", string(r.Reads[0][0].Value))
		assert.Empty(t, r.Reads[1])
		assert.Len(t, r.Reads[2], 2)

		_, err = s.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.DeleteUnder("d/")}})
		require.NoError(t, err)
		list, _, err := s.Range(t.Context(), "d/")
		require.NoError(t, err)
		assert.Empty(t, list)
	})
}

func TestCommitEach(t *testing.T) {
	everyWay(t, func(t *testing.T, s *kv.Store) {
		put(t, s, "there", "1")
		held, err := s.CommitEach(t.Context(), []kv.Txn{
			{If: []kv.Cond{kv.Exists("there")}, Then: []kv.Op{kv.Put("a", nil)}},
			{If: []kv.Cond{kv.Absent("there")}, Then: []kv.Op{kv.Put("b", nil)}, Else: []kv.Op{kv.Read("there")}},
			{Then: []kv.Op{kv.Put("c", nil)}},
		})
		require.NoError(t, err)
		assert.Equal(t, []bool{true, false, true}, held)
		keys, err := s.Keys(t.Context(), "")
		require.NoError(t, err)
		assert.Equal(t, []string{"a", "c", "there"}, keys, "a failed transaction delays no other one")
	})
}

func TestCommitRefusesWhatIsTooLarge(t *testing.T) {
	everyWay(t, func(t *testing.T, s *kv.Store) {
		_, err := s.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Put("big", make([]byte, kv.MaxRequest))}})
		assert.NoError(t, err)
		_, err = s.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Put("big", make([]byte, 3<<20))}})
		assert.ErrorIs(t, err, kv.ErrTooLarge)
		_, err = s.Commit(t.Context(), kv.Txn{If: many(kv.MaxOps)})
		assert.NoError(t, err)
		_, err = s.Commit(t.Context(), kv.Txn{If: many(kv.MaxOps + 1)})
		assert.ErrorIs(t, err, kv.ErrTooLarge)
	})
}

func many(n int) []kv.Cond {
	list := make([]kv.Cond, n)
	for i := range list {
		list[i] = kv.Absent("k" + strings.Repeat("x", i))
	}
	return list
}

func TestCommitsSurviveARestart(t *testing.T) {
	dir := kvtest.Dir(t)
	s := kvtest.OpenIn(t, dir)
	at := put(t, s, "k", "v")
	require.NoError(t, s.Close())
	require.NoError(t, s.Close(), "a second time")

	e, _, err := kvtest.OpenIn(t, dir).Get(t.Context(), "k")
	require.NoError(t, err)
	assert.Equal(t, at, e.Modified)
}

// After a store has been away for any length of time, an instance of the server reconnects soon after its return.
func TestAStoreThatWasAwayIsFound(t *testing.T) {
	t.Parallel()
	dir := kvtest.Dir(t)
	first := kvtest.OpenIn(t, dir)
	s := kvtest.Again(t, first)
	answers := func() bool {
		ctx, stop := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer stop()
		_, _, err := s.Get(ctx, "k")
		return err == nil
	}
	_, _, err := s.Get(t.Context(), "k")
	require.NoError(t, err)
	require.NoError(t, first.Close())
	for away := time.Now(); time.Since(away) < 33*time.Second; { // as many connection attempts as that time allows
		require.False(t, answers())
	}
	again := kvtest.OpenIn(t, dir)
	require.Equal(t, first.Endpoint(), again.Endpoint())
	kvtest.Again(t, again) // the time begins when a new connection answers, which a busy machine delays too
	back := time.Now()
	require.Eventually(t, answers, 40*time.Second, 10*time.Millisecond)
	assert.Less(t, time.Since(back), 8*time.Second, "without a limit, the next attempt comes after 9 to 16 s")
}

func TestSecondProcessGetsErrInUse(t *testing.T) {
	dir := kvtest.Dir(t)
	kvtest.OpenIn(t, dir)
	_, err := kv.Open(t.Context(), kv.Config{DataDir: dir})
	require.ErrorIs(t, err, kv.ErrInUse)
	assert.ErrorContains(t, err, dir)
}

func TestALongPathGetsItsSocketElsewhere(t *testing.T) {
	dir := filepath.Join(kvtest.Dir(t), strings.Repeat("deep/", 30))
	s := kvtest.OpenIn(t, dir)
	put(t, kvtest.Again(t, s), "k", "v")
	socket := strings.TrimPrefix(s.Endpoint(), "unix:")
	require.NoError(t, s.Close())
	_, err := os.Stat(filepath.Dir(socket))
	assert.ErrorIs(t, err, os.ErrNotExist, "nothing is left behind")
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	_, err := kv.Open(t.Context(), kv.Config{})
	assert.Error(t, err)
	_, err = kv.Open(t.Context(), kv.Config{DataDir: "x", Endpoints: []string{"y:1"}})
	assert.Error(t, err)

	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = kv.Open(ctx, kv.Config{Endpoints: []string{"127.0.0.1:1"}})
	require.ErrorIs(t, err, kv.ErrUnavailable)
	assert.ErrorContains(t, err, "127.0.0.1:1")
}

func TestALeaseKeepsItsKeysUntilItIsClosed(t *testing.T) {
	t.Parallel()
	const ttl = 5 * time.Second // a busy machine renews it in time
	everyWay(t, func(t *testing.T, s *kv.Store) {
		l, err := s.Lease(t.Context(), ttl)
		require.NoError(t, err)
		_, err = s.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.PutBound("mine", nil, l)}})
		require.NoError(t, err)

		gone := make(chan struct{})
		ended := errors.New("ended")
		_, at, err := s.Get(t.Context(), "mine")
		require.NoError(t, err)
		watched := make(chan error, 1)
		go func() {
			watched <- s.Watch(t.Context(), "mine", at, func([]kv.Change) error { close(gone); return ended })
		}()
		select {
		case <-gone:
			assert.Fail(t, "the key went while its lease was renewed")
		case <-l.Lost():
			assert.Fail(t, "the lease was lost")
		case <-time.After(2 * ttl):
		}
		require.NoError(t, l.Close(t.Context()))
		<-gone
		assert.ErrorIs(t, <-watched, ended)
		<-l.Lost()
	})
}

// A single member has no follower that must catch up, so applied entries leave the memory.
func TestTheLogOfOneMemberIsNotKeptInMemory(t *testing.T) {
	kv.AssertGrowth(t, kvtest.Open(t), 4000, 20<<10, 40<<20)
}
