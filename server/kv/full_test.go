//go:build linux

package kv_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
)

// small mounts a small file system for one test.
func small(t *testing.T, mib int) string { return kvtest.Disk(t, fmt.Sprintf("size=%dm", mib)) }

// fill takes all free space of a disk except some bytes, as another program would. It takes them in one step, so that it never takes the
// space that the store frees when it notices.
func fill(t *testing.T, path string, but int64) {
	t.Helper()
	free := free(t, filepath.Dir(path))
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	require.NoError(t, syscall.Fallocate(int(file.Fd()), 0, 0, free-but))
	require.NoError(t, file.Close())
}

// free returns the free bytes of the disk of a folder.
func free(t *testing.T, dir string) int64 {
	t.Helper()
	var disk syscall.Statfs_t
	require.NoError(t, syscall.Statfs(dir, &disk))
	return int64(disk.Bavail) * disk.Bsize
}

// blocks returns how much space a file takes on its disk.
func blocks(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Sys().(*syscall.Stat_t).Blocks * 512 //nolint:forcetypeassert // the file is only built on Linux
}

// tidied commits a small change, and reports whether the log has its next segment and space for another one.
func tidied(t *testing.T, s *kv.Store, dir string, segment int64) bool {
	t.Helper()
	_, err := s.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Put("small", nil)}})
	require.NoError(t, err)
	next, err := filepath.Glob(filepath.Join(dir, "member", "wal", "*.tmp"))
	require.NoError(t, err)
	if len(next) != 1 || free(t, dir) < segment+segment/8 {
		return false
	}
	info, err := os.Stat(next[0])
	return err == nil && info.Size() == segment
}

// forgotten reports whether the store has compacted a revision. The space that it has measured may be that of a second ago.
func forgotten(t *testing.T, s *kv.Store, revision int64) bool {
	t.Helper()
	_, err := s.GetAt(t.Context(), "k0", revision)
	return errors.Is(err, kv.ErrCompacted)
}

// nearSnapshot brings the log so far that the first entries of the next start make a snapshot due.
func nearSnapshot(t *testing.T, s *kv.Store, dir string, every int) {
	t.Helper()
	newest := func() string {
		names, err := filepath.Glob(filepath.Join(dir, "member", "snap", "*.snap"))
		require.NoError(t, err)
		return names[len(names)-1]
	}
	for before := newest(); newest() == before; {
		put(t, s, "small", "")
	}
	for range every - 1 {
		put(t, s, "small", "")
	}
}

// cutHoles ends a database where its blocks end. etcd reads the whole file when it starts, and this file system gives blocks to the holes that it
// reads, until there is no space for a snapshot. A disk does not.
func cutHoles(t *testing.T, db string) {
	t.Helper()
	require.NoError(t, os.Truncate(db, blocks(db)))
}

// Another program fills the disk, up to its last bytes. The store continues over several log segments and many
// snapshots, whichever write finds the disk full first. No acknowledged change is lost, and the store reports when
// there is space again.
func TestDiskFilledByOtherPrograms(t *testing.T) {
	const segment, snapshots = 1 << 20, 50
	kv.SetSizes(t, segment, 6<<20, snapshots)
	for _, left := range []int64{0, 4 << 10, 64 << 10, 512 << 10, segment} {
		t.Run(fmt.Sprint(left), func(t *testing.T) {
			t.Parallel()
			dir := small(t, 64)
			config := kv.Config{DataDir: filepath.Join(dir, "d")}
			s, err := kv.Open(t.Context(), config)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, s.Close()) })
			reserve := filepath.Join(dir, "d", "reserve")
			require.Eventually(t, func() bool { return blocks(reserve) >= kv.ReserveSize() }, 30*time.Second, 10*time.Millisecond)
			fill(t, filepath.Join(dir, "rest"), left)
			require.Eventually(t, func() bool { _, err := os.Stat(reserve); return s.Space().Full && os.IsNotExist(err) }, 30*time.Second, 10*time.Millisecond)

			value := strings.Repeat("x", 4<<10)
			const puts = 1200 // five segments, 24 snapshots
			for i := range puts {
				done, err := s.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Put(fmt.Sprint("k", i%7), fmt.Append(nil, i, value))}})
				require.NoError(t, err, "put %d", i)
				if i%100 == 99 { // a log of real size does not grow faster than the store measures its space
					require.Eventually(t, func() bool { return tidied(t, s, config.DataDir, segment) }, 30*time.Second, 5*time.Millisecond)
				}
				if i%400 == 399 {
					require.Eventually(t, func() bool {
						return forgotten(t, s, done.Revision-200) && tidied(t, s, config.DataDir, segment) && s.Space().Used < 1<<20
					}, 30*time.Second, 10*time.Millisecond, "the history is forgotten")
				}
			}
			assert.True(t, s.Space().Full)
			check := func(s *kv.Store) {
				for i := puts - 7; i < puts; i++ {
					e, _, err := s.Get(t.Context(), fmt.Sprint("k", i%7))
					require.NoError(t, err)
					require.Equal(t, fmt.Sprint(i, value), string(e.Value))
				}
			}
			check(s)
			nearSnapshot(t, s, config.DataDir, snapshots)
			require.NoError(t, s.Close())
			cutHoles(t, filepath.Join(config.DataDir, "member", "snap", "db"))
			again, err := kv.Open(t.Context(), config) // a start needs no space either
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, again.Close()) })
			check(again)
			require.NoError(t, os.Remove(filepath.Join(dir, "rest")))
			require.Eventually(t, func() bool { return !again.Space().Full }, 30*time.Second, 10*time.Millisecond)
			put(t, again, "later", "x")
		})
	}
}

// Contents take all files of a disk that has enough bytes for more. The store stops them before it is in danger itself, and continues over
// several snapshots.
func TestContentsLeaveFilesForTheStore(t *testing.T) {
	const all, snapshots = 1200, 50
	kv.SetSizes(t, 1<<20, 6<<20, snapshots)
	dir := kvtest.Disk(t, fmt.Sprintf("size=64m,nr_inodes=%d", all))
	s, err := kv.Open(t.Context(), kv.Config{DataDir: filepath.Join(dir, "d")})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	n := 0
	for ; n < 2*all; n++ {
		end, ok := s.TakeSpace(1)
		if !ok {
			break
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprint(n)), nil, 0o600))
		end()
	}
	require.Eventually(t, func() bool { return s.Space().Full }, 30*time.Second, 10*time.Millisecond)
	assert.Contains(t, s.Space().String(), "inodes")
	for range 4 * snapshots {
		put(t, s, "small", "")
	}
	for i := range n {
		require.NoError(t, os.Remove(filepath.Join(dir, fmt.Sprint(i))))
	}
	require.Eventually(t, func() bool { return !s.Space().Full }, 30*time.Second, 10*time.Millisecond)
}
