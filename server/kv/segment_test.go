//go:build linux

package kv_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
)

// The disk is full just when etcd allocates its next log segment, and other programs have taken the reserve too. Later there is space. The store goes on
// over several segments, although etcd looks for space only once and finds out when it needs the segment.
func TestSpaceForTheNextSegmentComesLater(t *testing.T) {
	const segment = 1 << 20
	kv.SetSizes(t, segment, 6<<20, 100_000)
	dir := small(t, 64)
	var log lockedBuffer
	config := kv.Config{DataDir: filepath.Join(dir, "d"), Log: slog.New(slog.NewTextHandler(&log, nil))}
	s, err := kv.Open(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	reserve := filepath.Join(config.DataDir, "reserve")
	require.Eventually(t, func() bool { return blocks(reserve) >= kv.ReserveSize() }, 30*time.Second, 10*time.Millisecond)
	rest, more := filepath.Join(dir, "rest"), filepath.Join(dir, "more")
	fill(t, rest, 0)
	// A deleted file loses its name before its space is free.
	require.Eventually(t, func() bool { return s.Space().Full && free(t, dir) >= kv.ReserveSize() }, 30*time.Second, 10*time.Millisecond)
	require.NoFileExists(t, reserve)
	fill(t, more, segment/2) // an entry may exceed its segment
	value := make([]byte, 4<<10)
	write := func(what string, puts int) {
		for i := range puts {
			_, err := s.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Put("k", value)}})
			require.NoError(t, err, "%s, put %d", what, i)
		}
	}
	write("on a full disk", segment/len(value)+10)
	require.Contains(t, log.String(), "failed to preallocate space")

	require.NoError(t, os.Remove(rest))
	require.Eventually(t, func() bool { return tidied(t, s, config.DataDir, segment) }, 30*time.Second, 5*time.Millisecond, "the next log segment is there")
	write("with space", 1200)
	segments, err := filepath.Glob(filepath.Join(config.DataDir, "member", "wal", "*.wal"))
	require.NoError(t, err)
	assert.Equal(t, "0000000000000005", filepath.Base(segments[len(segments)-1])[:16], fmt.Sprint(segments))
}
