package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// filesIn are the names of the files of a folder.
func filesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	p, as := serveUsers(t)
	root := as("root")
	require.Equal(t, 0, as("ann").run("text", "put", "plan").code)
	dir := t.TempDir()
	file := filepath.Join(dir, "b.tar")

	made := root.run("", "backup", file)
	require.Equal(t, 0, made.code, made.stderr)
	assert.Regexp(t, `2 files with 4 bytes of contents, and a store of \d+ bytes`, made.stdout)
	info, err := os.Stat(file)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode(), "it has everything")
	refused := as("ann").run("", "backup", filepath.Join(dir, "ann.tar"))
	assert.Equal(t, exitRefused, refused.code)
	assert.Contains(t, refused.stderr, "not_allowed")
	assert.Equal(t, exitFailed, root.run("", "backup", filepath.Join(dir, "none", "b.tar")).code)
	assert.Equal(t, []string{"b.tar"}, filesIn(t, dir))
	p.stop(t)

	again := filepath.Join(t.TempDir(), "data")
	restored := root.run("", "restore", file, "--data-dir", again)
	require.Equal(t, 0, restored.code, restored.stderr)
	assert.Contains(t, restored.stdout, "holdfast serve --data-dir "+again)
	twice := root.run("", "restore", file, "--data-dir", again)
	assert.Equal(t, exitFailed, twice.code)
	assert.Contains(t, twice.stderr, "is not empty")
	_, as = serveUsers(t, "--data-dir", again)
	assert.Equal(t, "text", as("bob").run("", "cat", "plan").stdout)

	streamed := as("root").run("", "backup", "-")
	require.Equal(t, 0, streamed.code, streamed.stderr)
	elsewhere := filepath.Join(t.TempDir(), "data")
	piped := as("root").run(streamed.stdout, "restore", "-", "--data-dir", elsewhere)
	assert.Equal(t, 0, piped.code, piped.stderr)
}

// A backup that does not arrive whole leaves the former file as it is, and no other one.
func TestBackupThatIsCutOff(t *testing.T) {
	t.Parallel()
	_, as := serveUsers(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "b.tar")
	require.Equal(t, 0, as("root").run("", "backup", file).code)
	archive, err := os.ReadFile(file)
	require.NoError(t, err)
	newer := bytes.Replace(archive, []byte(`"format":1`), []byte(`"format":9`), 1)
	for name, test := range map[string]struct {
		serve http.HandlerFunc
		want  string
	}{
		"closed": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(archive[:len(archive)/2]) }, "is damaged: it is cut off"},
		"broken": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(archive[:len(archive)/2])
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, "did not arrive whole"},
		"newer": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(newer) }, "a newer version of holdfast"},
		"older": {func(w http.ResponseWriter, _ *http.Request) { http.NotFound(w, nil) }, "404"},
	} {
		cut := httptest.NewServer(test.serve)
		defer cut.Close()
		failed := as("root").run("", "backup", file, "--server", cut.URL)
		assert.NotEqual(t, 0, failed.code, name)
		assert.Contains(t, failed.stderr, test.want, name)
		kept, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.True(t, string(archive) == string(kept), name)
		assert.Equal(t, []string{"b.tar"}, filesIn(t, dir), name)
	}
}

// A client that stops to read its backup does not keep the server from stopping.
func TestStalledBackupDoesNotDelayTheStop(t *testing.T) {
	t.Parallel()
	p, as := serveUsers(t, "--stop-limit", "2s")
	for _, document := range []string{"a", "b"} { // more than the buffers of a connection
		put := as("ann").run(strings.Repeat(document, 8<<20), "put", document)
		require.Equal(t, 0, put.code, put.stderr)
	}
	conn, err := net.Dial("tcp", p.addr)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = fmt.Fprintf(conn, "GET /api/backup HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer root-key\r\n\r\n", p.addr)
	require.NoError(t, err)
	begin := make([]byte, 1024)
	_, err = io.ReadFull(conn, begin)
	require.NoError(t, err)
	require.Contains(t, string(begin), "200 OK")
	p.stop(t)
}
