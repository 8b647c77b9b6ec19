//go:build linux

package kv_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
)

// startAlone starts a store in a process of its own, and returns its output.
func startAlone(t *testing.T, dir string) string {
	t.Helper()
	start := exec.Command(os.Args[0], "-test.run=^TestFirstStartOnAFullDisk$")
	start.Env = append(os.Environ(), startOn+"="+dir)
	said, err := start.CombinedOutput()
	require.ErrorAs(t, err, new(*exec.ExitError))
	return string(said)
}

// logOf returns the bytes of a log.
func logOf(t *testing.T, dir string) (text []byte) {
	t.Helper()
	segments, err := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal"))
	require.NoError(t, err)
	for _, path := range segments {
		part, err := os.ReadFile(path)
		require.NoError(t, err)
		text = append(text, part...)
	}
	return text
}

// A disk loses a part of the log in the middle, and the database has later changes. etcd would take that for a loss of power, cut the log and
// go on without some acknowledged changes, after some starts at the latest. Each start refuses, and changes nothing.
func TestDamageInTheMiddleOfTheLogStays(t *testing.T) {
	const sector = 512
	for name, damage := range map[string]func(text []byte, at int){
		"in an entry":           func(text []byte, at int) { clear(text[at/sector*sector+sector : at/sector*sector+2*sector]) },
		"from an entry's start": func(text []byte, at int) { clear(text[at/sector*sector-sector : at/sector*sector+sector]) },
	} {
		t.Run(name, func(t *testing.T) {
			kv.SetSizes(t, 4<<20, 6<<20, 1000)
			config := kv.Config{DataDir: t.TempDir()}
			s, err := kv.Open(t.Context(), config)
			require.NoError(t, err)
			put(t, s, "early", string(bytes.Repeat([]byte("torn"), 1<<10)))
			for range 3 {
				put(t, s, "acknowledged", "text")
			}
			require.NoError(t, s.Close())
			segments, err := filepath.Glob(filepath.Join(config.DataDir, "member", "wal", "*.wal"))
			require.NoError(t, err)
			require.Len(t, segments, 1)
			text, err := os.ReadFile(segments[0])
			require.NoError(t, err)
			damage(text, bytes.Index(text, []byte("torntorn")))
			require.NoError(t, os.WriteFile(segments[0], text, 0o600))

			before := logOf(t, config.DataDir)
			for i := range 6 {
				assert.Contains(t, startAlone(t, config.DataDir), "damaged", "start %d", i)
			}
			assert.True(t, bytes.Equal(before, logOf(t, config.DataDir)), "the log is as it was")
			assert.Empty(t, broken(t, config.DataDir))
		})
	}
}

// The copy that etcd makes of a log before it repairs it stays until a start has succeeded.
func TestCopyOfATornLogStaysUntilAStartSucceeds(t *testing.T) {
	kv.SetSizes(t, 4<<20, 6<<20, 1000)
	config := kv.Config{DataDir: t.TempDir()}
	s, err := kv.Open(t.Context(), config)
	require.NoError(t, err)
	put(t, s, "last", string(bytes.Repeat([]byte("torn"), 1<<10)))
	require.NoError(t, s.Close())
	db := filepath.Join(config.DataDir, "member", "snap", "db")
	whole, err := os.ReadFile(db)
	require.NoError(t, err)
	kept := filepath.Join(config.DataDir, "member", "wal", "0000000000000000-0000000000000000.wal.broken")
	require.NoError(t, os.WriteFile(kept, []byte("copy"), 0o600)) // the process has ended before the store was open
	require.NoError(t, os.Truncate(db, 100))
	assert.Contains(t, startAlone(t, config.DataDir), "damaged")
	assert.FileExists(t, kept)
	require.NoError(t, os.WriteFile(db, whole, 0o600))
	s, err = kv.Open(t.Context(), config)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	assert.NoFileExists(t, kept)
}
