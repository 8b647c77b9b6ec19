// Package kvtest provides stores for tests.
package kvtest

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/loopback"
	"github.com/holdfast-dev/holdfast/server/kv"
)

// Open starts an empty store for one test and closes it at its end.
func Open(t testing.TB) *kv.Store {
	t.Helper()
	return OpenIn(t, Dir(t))
}

// OpenIn opens the store of a data directory. The end of the test closes it, if the test has not.
func OpenIn(t testing.TB, dir string) *kv.Store {
	t.Helper()
	return open(t, kv.Config{DataDir: dir})
}

// Again opens a second connection to the store, over its socket, as another instance of the server would.
func Again(t testing.TB, s *kv.Store) *kv.Store {
	t.Helper()
	return open(t, kv.Config{Endpoints: []string{s.Endpoint()}})
}

// Sharing opens another store with a prefix in the cluster of s.
func Sharing(t testing.TB, s *kv.Store, prefix string) *kv.Store {
	t.Helper()
	return open(t, kv.Config{Endpoints: []string{s.Endpoint()}, Prefix: prefix})
}

// Dir returns an empty directory with a path short enough for a socket.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "kv")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

func open(t testing.TB, c kv.Config) *kv.Store {
	t.Helper()
	s, err := kv.Open(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// FreeURL returns a URL on this machine with a free port.
func FreeURL(t testing.TB) string {
	t.Helper()
	port, err := loopback.FreePort()
	require.NoError(t, err)
	return "http://127.0.0.1:" + port
}

// Cluster starts a cluster of n embedded members and returns each one's store.
func Cluster(t testing.TB, n int) []*kv.Store {
	t.Helper()
	first := kv.Member{PeerURL: FreeURL(t), ClientURL: FreeURL(t)}
	stores := []*kv.Store{open(t, kv.Config{DataDir: Dir(t), Member: first})}
	for range n - 1 {
		m := kv.Member{PeerURL: FreeURL(t), Join: []string{first.ClientURL}}
		stores = append(stores, open(t, kv.Config{DataDir: Dir(t), Member: m}))
	}
	return stores
}

// Disk mounts a file system in memory with options of tmpfs for one test. It skips the test where none can be mounted.
func Disk(t *testing.T, options string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if exec.Command("mount", "-t", "tmpfs", "-o", options, "tmpfs", dir).Run() != nil {
		t.Skip("a small file system cannot be mounted here")
	}
	t.Cleanup(func() { assert.NoError(t, exec.Command("umount", "-l", dir).Run()) })
	return dir
}
