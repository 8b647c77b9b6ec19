package blobs_test

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/blobs"
	"github.com/holdfast-dev/holdfast/server/blobs/blobstest"
)

func TestFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "blobs")
	blobstest.Run(t, func(t *testing.T) blobs.Blobs {
		f, err := blobs.OpenFiles(dir)
		require.NoError(t, err)
		return f
	})
}

// A half-written file after a crash is not a blob. A look at all blobs an hour later removes it.
func TestHalfWrittenFilesAreRemoved(t *testing.T) {
	dir := t.TempDir()
	f, err := blobs.OpenFiles(dir)
	require.NoError(t, err)
	left := filepath.Join(dir, "ab", "tmp-123")
	require.NoError(t, os.WriteFile(left, []byte("half"), 0o600))
	require.NoError(t, f.Each(t.Context(), func(name string) error { assert.Fail(t, name); return nil }))
	past := time.Now().Add(-2 * time.Hour)
	require.NoError(t, os.Chtimes(left, past, past))
	require.NoError(t, f.Each(t.Context(), func(name string) error { assert.Fail(t, name); return nil }))
	assert.NoFileExists(t, left)
}

// A server starts and looks at all blobs while another server, which has mounted the same directory, writes one. The blob is stored.
func TestAnotherServerStartsDuringAWrite(t *testing.T) {
	dir := t.TempDir()
	f, err := blobs.OpenFiles(dir)
	require.NoError(t, err)
	f.SetFault(func(step string) error {
		if step == "rename" {
			other, err := blobs.OpenFiles(dir)
			require.NoError(t, err)
			return other.Each(t.Context(), func(string) error { return nil })
		}
		return nil
	})
	require.NoError(t, f.Put(t.Context(), "ab-first", []byte("first")))
	r, err := f.Open(t.Context(), "ab-first")
	require.NoError(t, err)
	require.NoError(t, r.Close())
}

// The disk is full at each step of a write. The write fails with ErrFull and leaves nothing behind, and the next one
// succeeds.
func TestFullDiskAtEachStep(t *testing.T) {
	dir := t.TempDir()
	f, err := blobs.OpenFiles(dir)
	require.NoError(t, err)
	var steps []string
	f.SetFault(func(step string) error { steps = append(steps, step); return nil })
	require.NoError(t, f.Put(t.Context(), "ab-first", []byte("first")))
	require.Len(t, steps, 6)
	for _, failing := range steps {
		for _, reason := range []error{syscall.ENOSPC, syscall.EDQUOT} {
			f.SetFault(func(step string) error {
				if step == failing {
					return &os.PathError{Op: step, Path: dir, Err: reason}
				}
				return nil
			})
			require.ErrorIs(t, f.Put(t.Context(), "ab-second", []byte("second")), blobs.ErrFull, failing)
			_, err := f.Open(t.Context(), "ab-second")
			require.ErrorIs(t, err, blobs.ErrNotFound, failing)
			left, err := os.ReadDir(filepath.Join(dir, "ab"))
			require.NoError(t, err)
			require.Len(t, left, 1, failing)
		}
		f.SetFault(nil)
		require.NoError(t, f.Put(t.Context(), "ab-second", []byte("second")))
		require.NoError(t, f.Delete(t.Context(), "ab-second"))
	}
	r, err := f.Open(t.Context(), "ab-first")
	require.NoError(t, err)
	data, err := io.ReadAll(r)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	assert.Equal(t, "first", string(data))
}
