package server_test

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/servertest"
)

// A server continues with the data directory of a former version: its lock is held, tokens rise, contents and history are there. The
// directory was made by commit 1d4ddd7 with --lock-ttl 876000h: ann locked and saved "held" twice, and saved "free".
// Do not make it again: later formats get a directory beside it.
func TestDataOfAFormerVersion(t *testing.T) {
	t.Parallel()
	c := servertest.Unlimited(t)
	unpack(t, filepath.Join("testdata", "former.tar.gz"), c.DataDir)
	s := startWith(t, c)
	ann, bob := s.as(t, "ann"), s.as(t, "bob")
	assertError(t, bob.do("POST", lockOf("held"), nil), http.StatusConflict, "already_locked")
	shown := ann.do("GET", lockOf("held"), nil)
	assert.Equal(t, true, shown.body["is_my_lock"])
	assert.Equal(t, "text two", string(bob.do("GET", contentOf("held"), nil).text))
	assert.Equal(t, "free text", string(bob.do("GET", contentOf("free"), nil).text))

	require.Equal(t, http.StatusOK, ann.do("PUT", lockOf("held"), nil).status)
	require.Equal(t, http.StatusOK, ann.save("held", shown.token(), "text three").status)
	assert.Len(t, generations(bob.do("GET", "/api/documents/held/history", nil)), 3)
	assert.Greater(t, bob.lock("free"), shown.token())
	require.Equal(t, http.StatusOK, ann.do("DELETE", lockOf("held"), nil).status)
	assert.Greater(t, bob.lock("held"), shown.token())
}

// unpack writes the files of an archive into a directory.
func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	file, err := os.Open(archive)
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	plain, err := gzip.NewReader(file)
	require.NoError(t, err)
	for files := tar.NewReader(plain); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		path := filepath.Join(dir, filepath.FromSlash(header.Name))
		if header.FileInfo().IsDir() {
			require.NoError(t, os.MkdirAll(path, 0o700))
			continue
		}
		data, err := io.ReadAll(files)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, data, 0o600))
	}
}
