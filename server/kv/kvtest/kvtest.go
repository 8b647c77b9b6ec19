// Package kvtest gives tests a store of their own.
package kvtest

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
)

// Open starts an empty store for one test and closes it at its end.
func Open(t testing.TB) *kv.Store {
	t.Helper()
	return OpenIn(t, Dir(t))
}

// OpenIn opens the store of a data directory and closes it at the end of the test, if the test has not.
func OpenIn(t testing.TB, dir string) *kv.Store {
	t.Helper()
	return open(t, kv.Config{DataDir: dir})
}

// Again opens a second way into the store, over its socket: what another instance of the server would have.
func Again(t testing.TB, s *kv.Store) *kv.Store {
	t.Helper()
	return open(t, kv.Config{Endpoints: []string{s.Endpoint()}})
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
