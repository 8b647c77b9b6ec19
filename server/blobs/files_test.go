package blobs_test

import (
	"os"
	"path/filepath"
	"testing"

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

// A file that a crash left half-written is no blob. The next start removes it.
func TestHalfWrittenFilesAreRemoved(t *testing.T) {
	dir := t.TempDir()
	f, err := blobs.OpenFiles(dir)
	require.NoError(t, err)
	left := filepath.Join(dir, "ab", "tmp-123")
	require.NoError(t, os.WriteFile(left, []byte("half"), 0o600))
	require.NoError(t, f.Each(t.Context(), func(name string) error { assert.Fail(t, name); return nil }))
	_, err = blobs.OpenFiles(dir)
	require.NoError(t, err)
	assert.NoFileExists(t, left)
}
