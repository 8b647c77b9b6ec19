package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/blobs"
	"github.com/holdfast-dev/holdfast/server/content"
	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/memory"
	"github.com/holdfast-dev/holdfast/server/locks"
)

// A server crashes between a blob and its transaction, and within another blob, and starts again at once. Neither stays, although
// they are too young at the start. A third blob can never be deleted, which delays nothing.
func TestTheBlobOfACrashGoesAfterAQuickRestart(t *testing.T) {
	dir := t.TempDir()
	files, err := blobs.OpenFiles(dir)
	require.NoError(t, err)
	half := filepath.Join(dir, "ab", "tmp-1")
	require.NoError(t, os.WriteFile(half, []byte("te"), 0o600))
	synctest.Test(t, func(t *testing.T) {
		m := memory.New()
		store := m.Client(nil)
		defer func() { assert.NoError(t, store.Close()); m.Close() }()
		sum := sha256.Sum256([]byte("text"))
		crash := time.Now().Add(-10 * time.Second)
		saved := crash.UnixMilli()
		require.NoError(t, os.Chtimes(half, crash, crash))
		require.NoError(t, files.Put(t.Context(), hex.EncodeToString(sum[:])+"-"+strconv.FormatInt(saved, 36)+"-ABCDEFGHIJ", []byte("text")))
		_, err := store.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Put("garbage/no-name-of-a-blob", nil)}})
		require.NoError(t, err)

		s := &Server{config: Config{Sweep: time.Minute, Log: slog.New(slog.DiscardHandler)}}
		ctx, stop := context.WithCancel(t.Context())
		s.running.Go(func() { s.tidy(ctx, content.New(content.Config{KV: store, Blobs: files})) })
		time.Sleep(2 * time.Hour)
		stop()
		s.running.Wait()
		assert.NoFileExists(t, half)
		require.NoError(t, files.Each(t.Context(), func(name string) error { t.Error(name, "is left"); return nil }))
	})
}

// leaving is the store of blobs of a server whose client leaves right after its blob is written.
type leaving struct {
	blobs.Blobs
	leave func()
}

func (l *leaving) Put(ctx context.Context, name string, data []byte) error {
	defer l.leave()
	return l.Blobs.Put(ctx, name, data)
}

// A client leaves between a blob and its transaction, long after the start of the server. The blob goes without another start.
func TestTheBlobOfASaveThatIsGivenUpGoes(t *testing.T) {
	dir := t.TempDir()
	files, err := blobs.OpenFiles(dir)
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		m := memory.New()
		store := m.Client(nil)
		table, err := locks.Open(t.Context(), store, locks.Config{})
		require.NoError(t, err)
		defer func() { table.Close(); assert.NoError(t, store.Close()); m.Close() }()
		lease, err := table.Acquire(t.Context(), locks.Request{Paths: []locks.Path{locks.Document("r")}, Holder: locks.Holder{ID: "ann"}, TTL: 24 * time.Hour})
		require.NoError(t, err)
		client, leave := context.WithCancel(t.Context())
		contents := content.New(content.Config{KV: store, Locks: table, Blobs: &leaving{files, leave}})

		s := &Server{config: Config{Sweep: time.Minute, Log: slog.New(slog.DiscardHandler)}}
		ctx, stop := context.WithCancel(t.Context())
		s.running.Go(func() { s.tidy(ctx, contents) })
		time.Sleep(3 * time.Hour)
		_, err = contents.Write(client, "r", content.Writer{Holder: "ann", Maker: "ann"}, lease.Token, content.Save{}, nil, []byte("text"))
		require.ErrorIs(t, err, context.Canceled)
		time.Sleep(3 * time.Hour)
		stop()
		s.running.Wait()
		require.NoError(t, files.Each(t.Context(), func(name string) error { t.Error(name, "is left"); return nil }))
	})
}
