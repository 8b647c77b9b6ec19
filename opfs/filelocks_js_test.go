//go:build js && wasm

package opfs

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/lock/locktest"
)

// newRoot returns a folder that nothing else uses.
func newRoot() string { return "test " + lock.NewID() + "/project" }

func newClient(t *testing.T, root string) *FileLocks {
	c, err := NewFileLocks(root, Options{Warn: func(detail string) { t.Log("warning:", detail) }})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
		defer stop()
		require.NoError(t, c.Close(ctx))
	})
	return c
}

func TestFileLocks(t *testing.T) {
	locktest.RunLocker(t, func(t *testing.T) func() lock.Locker {
		root := newRoot()
		return func() lock.Locker { return newClient(t, root) }
	})
}
