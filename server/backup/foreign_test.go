package backup

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/blobs"
	"github.com/holdfast-dev/holdfast/server/content"
	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
	"github.com/holdfast-dev/holdfast/server/locks"
)

// deployment returns the contents of a server, and the place of their blobs.
func deployment(t *testing.T, store *kv.Store, place string) *content.Store {
	t.Helper()
	table, err := locks.Open(t.Context(), store, locks.Config{})
	require.NoError(t, err)
	t.Cleanup(table.Close)
	files, err := blobs.Open(t.Context(), place)
	require.NoError(t, err)
	return content.New(content.Config{KV: store, Locks: table, Blobs: files})
}

func save(t *testing.T, s *content.Store, text string) {
	t.Helper()
	lease, err := s.Locks.Acquire(t.Context(), locks.Request{Paths: []locks.Path{locks.Document("r")}, Holder: locks.Holder{ID: "ann"}, TTL: time.Minute})
	require.NoError(t, err)
	_, err = s.Write(t.Context(), "r", content.Writer{Holder: "ann"}, lease.Token, content.Save{}, nil, []byte(text))
	require.NoError(t, err)
}

// The contents of a deployment get into the directory of another one: by a restore, or by a copy of the files. No server starts with both,
// because it would delete the contents that its store does not name.
func TestContentsOfAnotherDeploymentStay(t *testing.T) {
	place, others := t.TempDir(), t.TempDir()
	mine, other := deployment(t, kvtest.Open(t), place), deployment(t, kvtest.Open(t), others)
	for _, s := range []*content.Store{mine, other} {
		require.NoError(t, s.Bind(t.Context()))
		save(t, s, "text")
	}
	var archive bytes.Buffer
	require.NoError(t, Write(t.Context(), mine, &archive))
	names := func() (list []string) {
		require.NoError(t, other.Blobs.Each(t.Context(), func(name string) error { list = append(list, name); return nil }))
		return list
	}
	before := names()
	_, err := Restore(t.Context(), &archive, filepath.Join(kvtest.Dir(t), "data"), others, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "--blobs belongs to another store")
	assert.Equal(t, before, names())
	require.NoError(t, other.Bind(t.Context()))

	require.NoError(t, os.CopyFS(others, os.DirFS(place)))
	copied := deployment(t, mine.KV, others)
	require.ErrorContains(t, copied.Bind(t.Context()), "--blobs belongs to another store")
}
