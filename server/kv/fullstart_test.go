//go:build linux

package kv_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
)

// allocate gives blocks to all of a database. This file system would give them to the holes that etcd reads; a disk does not.
func allocate(t *testing.T, dir string) {
	t.Helper()
	db, err := os.OpenFile(filepath.Join(dir, "member", "snap", "db"), os.O_WRONLY, 0)
	require.NoError(t, err)
	info, err := db.Stat()
	require.NoError(t, err)
	require.NoError(t, syscall.Fallocate(int(db.Fd()), 0, 0, info.Size()))
	require.NoError(t, db.Close())
}

// A store starts again on a disk that is full, because it deletes its reserve first. When there is room, it continues over several log
// segments, although etcd looks for space for the next one only once.
func TestStartOnAFullDisk(t *testing.T) {
	const segment = 1 << 20
	kv.SetSizes(t, segment, 6<<20, 50)
	dir := small(t, 64)
	config := kv.Config{DataDir: filepath.Join(dir, "d")}
	s, err := kv.Open(t.Context(), config)
	require.NoError(t, err)
	reserve := filepath.Join(config.DataDir, "reserve")
	require.Eventually(t, func() bool { return blocks(reserve) >= kv.ReserveSize() }, 30*time.Second, 10*time.Millisecond)
	require.NoError(t, s.Close())
	allocate(t, config.DataDir)
	rest := filepath.Join(dir, "rest")
	fill(t, rest, 0)

	s, err = kv.Open(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	assert.NoFileExists(t, reserve)
	require.Eventually(t, func() bool { return s.Space().Full }, 30*time.Second, 10*time.Millisecond)
	require.NoError(t, os.Remove(rest))
	require.Eventually(t, func() bool { return tidied(t, s, config.DataDir, segment) }, 30*time.Second, 5*time.Millisecond,
		"the next log segment is there")
	value := make([]byte, 4<<10)
	for i := range 1200 { // five segments
		_, err := s.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Put("k", value)}})
		require.NoError(t, err, "put %d", i)
	}
}

// The database has many free pages, and the disk has no space for a smaller copy of it. The store starts with the large file.
func TestStartWithoutSpaceToShrink(t *testing.T) {
	const mib = 1 << 20
	kv.SetSizes(t, mib, 6*mib, 50)
	kv.SetDefrag(t, 1)
	dir := small(t, 256)
	config := kv.Config{DataDir: filepath.Join(dir, "d")}
	s, err := kv.Open(t.Context(), config)
	require.NoError(t, err)
	for i := range 40 {
		_, err := s.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Put(fmt.Sprint(i%2, "/", i), make([]byte, mib))}})
		require.NoError(t, err)
	}
	result, err := s.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.DeleteUnder("0/")}})
	require.NoError(t, err)
	require.NoError(t, s.Compact(t.Context(), result.Revision))
	require.Eventually(t, func() bool {
		_, err := s.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Put("key", nil)}})
		return err == nil && s.Space().Size-s.Space().Used > 10*mib
	}, 30*time.Second, 10*time.Millisecond)
	require.NoError(t, s.Close())
	allocate(t, config.DataDir)
	fill(t, filepath.Join(dir, "rest"), 4*mib)

	s, err = kv.Open(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	_, err = s.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Put("key", nil)}})
	require.NoError(t, err)
}

// A refusal of the system is no damage: nobody should restore a backup because a disk is full, or a folder is in use.
func TestStartThatTheSystemRefuses(t *testing.T) {
	kv.SetSizes(t, 4<<20, 6<<20, 50)
	for name, c := range map[string]struct {
		mib     int
		prepare func(t *testing.T, dir string)
		refusal error
	}{
		"a full disk": {
			1, func(*testing.T, string) {},
			syscall.ENOSPC,
		},
		"a folder that cannot be removed": {
			64, func(t *testing.T, dir string) {
				busy := filepath.Join(dir, "member", "wal.tmp")
				require.NoError(t, os.MkdirAll(busy, 0o700))
				require.NoError(t, exec.Command("mount", "-t", "tmpfs", "tmpfs", busy).Run())
				t.Cleanup(func() { assert.NoError(t, exec.Command("umount", "-l", busy).Run()) })
			},
			syscall.EBUSY,
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := small(t, c.mib)
			c.prepare(t, dir)
			_, err := kv.Open(t.Context(), kv.Config{DataDir: dir})
			require.ErrorIs(t, err, c.refusal)
			assert.NotContains(t, err.Error(), "damaged")
			assert.ErrorContains(t, err, "fix the cause and start again")
		})
	}
}

// Not even a new database has space. etcd notices it in a goroutine of its own, so the process ends with a sentence. With space, it starts.
func TestFirstStartOnAFullDisk(t *testing.T) {
	if dir := os.Getenv(startOn); dir != "" {
		_, err := kv.Open(t.Context(), kv.Config{DataDir: dir})
		fmt.Println(err)
		os.Exit(1)
	}
	kv.SetSizes(t, 4<<20, 6<<20, 50)
	for _, left := range []int64{0, 8 << 10, 40 << 10, 1 << 20} {
		t.Run(fmt.Sprint(left), func(t *testing.T) {
			dir := small(t, 64)
			config := kv.Config{DataDir: filepath.Join(dir, "d")}
			require.NoError(t, os.Mkdir(config.DataDir, 0o700))
			rest := filepath.Join(dir, "rest")
			fill(t, rest, left)
			start := exec.Command(os.Args[0], "-test.run=^TestFirstStartOnAFullDisk$")
			start.Env = append(os.Environ(), startOn+"="+config.DataDir)
			said, err := start.CombinedOutput()
			require.ErrorAs(t, err, new(*exec.ExitError))
			assert.Contains(t, string(said), syscall.ENOSPC.Error())
			assert.NotContains(t, string(said), "goroutine", "a stack trace")
			require.NoError(t, os.Remove(rest))
			s, err := kv.Open(t.Context(), config)
			require.NoError(t, err)
			require.NoError(t, s.Close())
		})
	}
}

// A database that has lost its bytes is damaged, although the system has its own words for what is wrong with the file.
func TestEmptyDatabaseIsDamaged(t *testing.T) {
	config := kv.Config{DataDir: t.TempDir()}
	s, err := kv.Open(t.Context(), config)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.NoError(t, os.Truncate(filepath.Join(config.DataDir, "member", "snap", "db"), 0))
	_, err = kv.Open(t.Context(), config)
	assert.ErrorContains(t, err, "damaged")
}

// startOn is the variable of a process that opens a store.
const startOn = "HOLDFAST_TEST_START_ON"
