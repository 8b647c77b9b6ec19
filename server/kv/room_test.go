package kv_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
)

// The store says that it gets full before it is, refuses when etcd would, and goes on by itself when there is room: the
// history is forgotten, the file gets smaller, the alarm is taken back.
func TestAStoreThatFillsUpAndRecovers(t *testing.T) {
	const quota = 64 << 20
	s, err := kv.Open(t.Context(), kv.Config{DataDir: kvtest.Dir(t), Quota: quota})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	value := bytes.Repeat([]byte("x"), 1<<20)
	warned, full := -1, -1
	var refused error
	n := 0
	for ; n < 200 && refused == nil; n++ {
		_, refused = s.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Put(fmt.Sprint("big/", n), value)}})
		if room := s.Room(); room.Warn && warned < 0 {
			warned = n
		}
		if room := s.Room(); room.Full && full < 0 {
			full = n
		}
		time.Sleep(50 * time.Millisecond)
	}
	require.ErrorIs(t, refused, kv.ErrFull)
	assert.Positive(t, warned)
	assert.Greater(t, full, warned, "a warning comes first")
	assert.Less(t, full, n-1, "contents are refused before anything else is")

	_, err = s.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.DeleteUnder("big/")}})
	require.NoError(t, err, "deleting is always possible")
	require.Eventually(t, func() bool {
		_, err := s.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Put("small", []byte("x"))}})
		return err == nil && !s.Room().Full && s.Room().Size < quota/2
	}, 30*time.Second, 100*time.Millisecond, "%v", s.Room())
}

// A data directory that was cut off is told in a sentence.
func TestATruncatedDataDirectory(t *testing.T) {
	for _, cut := range []struct {
		file string
		to   int64
	}{{"member/snap/db", 100}, {"member/snap/db", 9000}, {"member/snap/db", 40_000}, {"member/wal/*.wal", 100}} {
		file := cut.file
		dir := kvtest.Dir(t)
		s := kvtest.OpenIn(t, dir)
		for i := range 20 {
			_, err := s.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Put(fmt.Sprint(i), bytes.Repeat([]byte("x"), 10_000))}})
			require.NoError(t, err)
		}
		require.NoError(t, s.Close())
		found, err := filepath.Glob(filepath.Join(dir, file))
		require.NoError(t, err)
		require.NotEmpty(t, found)
		for _, path := range found {
			require.NoError(t, os.Truncate(path, cut.to))
		}
		again, err := kv.Open(t.Context(), kv.Config{DataDir: dir})
		if err == nil {
			require.NoError(t, again.Close())
		}
		require.Error(t, err, "%v", cut)
		assert.Contains(t, err.Error(), dir)
		assert.NotContains(t, err.Error(), "goroutine")
		t.Log(err)
	}
}
