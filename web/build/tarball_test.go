package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The tarball contains nothing of the machine on which it was packed: its times, modes and owners are fixed.
func TestATarballDependsOnItsFilesAlone(t *testing.T) {
	packed := func(mode os.FileMode, at time.Time) []byte {
		dir := t.TempDir()
		for _, name := range []string{"package.json", "holdfast.js"} {
			path := filepath.Join(dir, name)
			require.NoError(t, os.WriteFile(path, []byte("text of "+name), mode))
			require.NoError(t, os.Chtimes(path, at, at))
		}
		var w bytes.Buffer
		require.NoError(t, pack(&w, dir, []string{"package.json", "holdfast.js"}))
		return w.Bytes()
	}
	first := packed(0o644, time.Now())
	assert.Equal(t, first, packed(0o755, time.Now().Add(-time.Hour)))

	unzipped, err := gzip.NewReader(bytes.NewReader(first))
	require.NoError(t, err)
	archive := tar.NewReader(unzipped)
	var names []string
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		names = append(names, header.Name)
		assert.EqualValues(t, 0o644, header.Mode)
	}
	assert.Equal(t, []string{"package/package.json", "package/holdfast.js"}, names)
}

func TestATarballWithoutOneOfItsFilesIsAnError(t *testing.T) {
	assert.ErrorIs(t, pack(new(bytes.Buffer), t.TempDir(), []string{"holdfast.js"}), os.ErrNotExist)
}

// Every file that the manifest exports is in the tarball.
func TestExportedFilesArePacked(t *testing.T) {
	assert.Subset(t, packedFiles(), exported())
	assert.Subset(t, packedFiles(), newManifest("1.2.3").Files)
}
