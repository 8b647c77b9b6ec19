//go:build linux

package kv_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
)

// openTorn makes a store whose power fails in the middle of a write. The database never has a change that is not whole in the log.
func openTorn(t *testing.T, config kv.Config) {
	t.Helper()
	s, err := kv.Open(t.Context(), config)
	require.NoError(t, err)
	put(t, s, "acknowledged", "text")
	require.NoError(t, s.Close())
	db := filepath.Join(config.DataDir, "member", "snap", "db")
	before, err := os.ReadFile(db)
	require.NoError(t, err)
	s, err = kv.Open(t.Context(), config)
	require.NoError(t, err)
	put(t, s, "last", string(bytes.Repeat([]byte("torn"), 1<<10)))
	require.NoError(t, s.Close())
	tear(t, config.DataDir)
	require.NoError(t, os.WriteFile(db, before, 0o600))
}

// tear zeroes a part of the last entry in the log, as a loss of power does in the middle of a write.
func tear(t *testing.T, dir string) {
	t.Helper()
	segments, err := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal"))
	require.NoError(t, err)
	last := segments[len(segments)-1]
	text, err := os.ReadFile(last)
	require.NoError(t, err)
	end := bytes.LastIndex(text, []byte("torntorn"))
	require.Positive(t, end)
	const sector = 512
	clear(text[end/sector*sector-2*sector : end/sector*sector-sector])
	require.NoError(t, os.WriteFile(last, text, 0o600))
}

func broken(t *testing.T, dir string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "member", "wal", "*.broken"))
	require.NoError(t, err)
	return list
}

// The power fails in the middle of a write, on a disk that other programs have filled so that the reserve is used up. etcd repairs its log from a
// copy, for which there is no space. That is no damage: with space the store starts, and has every acknowledged change.
func TestTornLogOnAFullDisk(t *testing.T) {
	kv.SetSizes(t, 4<<20, 6<<20, 1000)
	dir := small(t, 64)
	config := kv.Config{DataDir: filepath.Join(dir, "d")}
	openTorn(t, config)
	require.NoError(t, os.RemoveAll(filepath.Join(config.DataDir, "reserve")))
	rest := filepath.Join(dir, "rest")
	fill(t, rest, 2<<20)
	said := startAlone(t, config.DataDir) // a start that fails leaves the database open
	assert.NotContains(t, said, "damaged")
	assert.Contains(t, said, "too little free space")
	assert.Contains(t, said, "start again")

	require.NoError(t, os.Remove(rest))
	s, err := kv.Open(t.Context(), config)
	require.NoError(t, err)
	e, _, err := s.Get(t.Context(), "acknowledged")
	require.NoError(t, err)
	assert.Equal(t, "text", string(e.Value))
	require.NoError(t, s.Close())
}

// The copy that etcd makes of a log before it repairs it does not stay forever: not after the next start, and not on a full disk.
func TestCopyOfATornLogGoes(t *testing.T) {
	kv.SetSizes(t, 4<<20, 6<<20, 1000)
	for name, full := range map[string]bool{"next start": false, "full disk": true} {
		t.Run(name, func(t *testing.T) {
			dir := small(t, 64)
			config := kv.Config{DataDir: filepath.Join(dir, "d")}
			openTorn(t, config)
			s, err := kv.Open(t.Context(), config)
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, s.Close()) })
			require.Len(t, broken(t, config.DataDir), 1)
			if full {
				fill(t, filepath.Join(dir, "rest"), 1<<20)
			} else {
				require.NoError(t, s.Close())
				s, err = kv.Open(t.Context(), config)
				require.NoError(t, err)
			}
			require.Eventually(t, func() bool { return len(broken(t, config.DataDir)) == 0 }, 30*time.Second, 10*time.Millisecond)
		})
	}
}
