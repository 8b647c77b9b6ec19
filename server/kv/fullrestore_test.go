//go:build linux

package kv_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
)

// restoreInto and restoreFrom name the directory and the file for the process that restores.
const restoreInto, restoreFrom = "HOLDFAST_TEST_RESTORE_INTO", "HOLDFAST_TEST_RESTORE_FROM"

// A restore finds the disk full, at whichever write. It says so and what to do, and does not call the backup damaged. The mark keeps servers off
// the directory.
func TestRestoreOnAFullDisk(t *testing.T) {
	kv.SetSizes(t, 4<<20, 6<<20, 50)
	if dir := os.Getenv(restoreInto); dir != "" {
		r, err := kv.BeginRestore(dir, slog.New(slog.DiscardHandler))
		if err == nil {
			err = r.Store(os.Getenv(restoreFrom), 1000)
		}
		fmt.Println(err)
		os.Exit(1)
	}
	from := snapshotFile(t)
	for _, left := range []int64{20 << 10, 120 << 10, 160 << 10, 200 << 10, 300 << 10, 1 << 20, 4 << 20} {
		t.Run(fmt.Sprint(left), func(t *testing.T) {
			dir := small(t, 64)
			fill(t, filepath.Join(dir, "rest"), left)
			restore := exec.Command(os.Args[0], "-test.run=^TestRestoreOnAFullDisk$")
			restore.Env = append(os.Environ(), restoreInto+"="+filepath.Join(dir, "d"), restoreFrom+"="+from)
			said, err := restore.CombinedOutput()
			t.Logf("%s", said[:min(len(said), 600)])
			require.ErrorAs(t, err, new(*exec.ExitError))
			assert.Contains(t, string(said), syscall.ENOSPC.Error())
			assert.Contains(t, string(said), "restore again")
			assert.NotContains(t, string(said), "damaged")
			assert.NotContains(t, string(said), "acknowledged")
			assert.NotContains(t, string(said), "goroutine", "a stack trace")
			assert.FileExists(t, filepath.Join(dir, "d", "RESTORING"))
		})
	}
}

// snapshotFile returns a file with a copy of a store.
func snapshotFile(t *testing.T) string {
	s, err := kv.Open(t.Context(), kv.Config{DataDir: t.TempDir()})
	require.NoError(t, err)
	for i := range 20 {
		put(t, s, fmt.Sprint("k", i), strings.Repeat("x", 4<<10))
	}
	var copied bytes.Buffer
	require.NoError(t, s.Snapshot(t.Context(), &copied))
	require.NoError(t, s.Close())
	path := filepath.Join(t.TempDir(), "snapshot")
	require.NoError(t, os.WriteFile(path, copied.Bytes(), 0o600))
	return path
}
