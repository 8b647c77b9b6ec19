package kv_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
)

// A store that fills up first warns, then refuses contents, then refuses every change, as etcd does. It recovers by
// itself after contents are deleted: it compacts the history, shrinks the file and clears the alarm.
func TestAStoreThatFillsUpAndRecovers(t *testing.T) {
	const quota, mib = 64 << 20, 1 << 20
	s, err := kv.Open(t.Context(), kv.Config{DataDir: kvtest.Dir(t), Quota: quota})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	value := bytes.Repeat([]byte("x"), mib)
	n := 0
	put := func() error {
		n++
		_, err := s.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Put(fmt.Sprint("big/", n), value)}})
		return err
	}
	// fill writes until the store has measured that a percentage of its quota is in use. The store measures
	// periodically.
	fill := func(share int64) kv.Space {
		for int64(n)*mib < quota/100*share {
			require.NoError(t, put())
		}
		require.Eventually(t, func() bool { return s.Space().Used >= quota/100*share }, 30*time.Second, 10*time.Millisecond)
		return s.Space()
	}

	assert.False(t, fill(70).Warn)
	warned := fill(84)
	assert.True(t, warned.Warn)
	assert.False(t, warned.Full, "a warning comes first")
	full := fill(96)
	assert.True(t, full.Full)
	assert.NoError(t, put(), "contents are refused before anything else is")
	var refused error
	for range 200 {
		if refused = put(); refused != nil {
			break
		}
	}
	require.ErrorIs(t, refused, kv.ErrFull)

	for err = kv.ErrUnavailable; errors.Is(err, kv.ErrUnavailable); { // a slow disk
		_, err = s.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.DeleteUnder("big/")}})
	}
	require.NoError(t, err, "deleting is always possible")
	require.Eventually(t, func() bool {
		_, err := s.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Put("small", []byte("x"))}})
		return err == nil && !s.Space().Full && s.Space().Size < quota/2
	}, 2*time.Minute, 100*time.Millisecond, "%v", s.Space()) // a busy machine needs a minute for it
}

// Opening a data directory whose files were truncated fails with an error that names the directory.
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

// A first start with the defaults logs no warning.
func TestDefaultQuotaIsNoReasonForAWarning(t *testing.T) {
	var out lockedBuffer
	s, err := kv.Open(t.Context(), kv.Config{DataDir: kvtest.Dir(t), Log: slog.New(slog.NewTextHandler(&out, nil))})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	assert.NotContains(t, out.String(), "quota exceeds")
}

// lockedBuffer is a log for several goroutines.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
