package blobs_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/blobs"
)

// Clients that read slowly keep many blobs open. The process has few of them open as files, and every reader gets all bytes.
func TestSlowReadersDoNotUseAllFiles(t *testing.T) {
	dir := t.TempDir()
	f, err := blobs.OpenFiles(dir)
	require.NoError(t, err)
	data := bytes.Repeat([]byte("0123456789"), 20_000)
	require.NoError(t, f.Put(t.Context(), "ab-1", data))
	readers := make([]io.ReadSeekCloser, 300)
	for i := range readers {
		readers[i], err = f.Open(t.Context(), "ab-1")
		require.NoError(t, err)
		_, err = io.ReadFull(readers[i], make([]byte, 5))
		require.NoError(t, err)
	}
	assert.LessOrEqual(t, openFiles(t, dir), 64)
	for _, r := range readers {
		rest, err := io.ReadAll(r)
		require.NoError(t, err)
		require.True(t, bytes.Equal(data[5:], rest))
		size, err := r.Seek(-3, io.SeekEnd)
		require.NoError(t, err)
		require.EqualValues(t, len(data)-3, size)
		end, err := io.ReadAll(r)
		require.NoError(t, err)
		require.Equal(t, "789", string(end))
		require.NoError(t, r.Close())
		_ = r.Close() // a second one frees no other place
	}
	assert.Zero(t, openFiles(t, dir))
	again, err := f.Open(t.Context(), "ab-1")
	require.NoError(t, err)
	assert.Equal(t, 1, openFiles(t, dir), "the places are free again")
	require.NoError(t, again.Close())
}

// Clients save hundreds of documents at once, and the disk is slow. The process has few of the files open, and all are written.
func TestManyWritersDoNotUseAllFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		f, err := blobs.OpenFiles(dir)
		require.NoError(t, err)
		slow := make(chan struct{})
		f.SetFault(func(step string) error {
			if step == "write" {
				<-slow
			}
			return nil
		})
		written := make(chan error)
		for i := range 300 {
			go func() { written <- f.Put(t.Context(), fmt.Sprintf("ab-%d", i), []byte("x")) }()
		}
		synctest.Wait()
		assert.LessOrEqual(t, openFiles(t, dir), 64)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, f.Put(gone, "ab-gone", nil), context.Canceled, "a client that has gone does not wait")
		close(slow)
		for range 300 {
			require.NoError(t, <-written)
		}
	})
}

// openFiles is the number of files in dir that the process has open.
func openFiles(t *testing.T, dir string) (n int) {
	list, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, entry := range list {
		if path, err := os.Readlink(filepath.Join("/proc/self/fd", entry.Name())); err == nil && strings.HasPrefix(path, dir) {
			n++
		}
	}
	return n
}

// A blob is removed while a reader above the count reads it. The reader fails, and does not end as if it had all bytes.
func TestAReaderOfARemovedBlobFails(t *testing.T) {
	f, err := blobs.OpenFiles(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, f.Put(t.Context(), "ab-1", []byte("0123456789")))
	var last io.ReadSeekCloser
	for range 100 {
		last, err = f.Open(t.Context(), "ab-1")
		require.NoError(t, err)
		defer last.Close()
	}
	_, err = io.ReadFull(last, make([]byte, 5))
	require.NoError(t, err)
	require.NoError(t, f.Delete(t.Context(), "ab-1"))
	_, err = io.ReadAll(last)
	assert.ErrorIs(t, err, blobs.ErrNotFound)
	_, err = f.Open(t.Context(), "ab-1")
	assert.ErrorIs(t, err, blobs.ErrNotFound)
}
