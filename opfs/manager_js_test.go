//go:build js && wasm

package opfs

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/lock"
)

func newManager(t *testing.T, root string) (*lock.Manager, *FileLocks) {
	c := newClient(t, root)
	m, err := lock.NewManager(lock.Config{OwnerName: "somebody", Backends: []lock.Backend{
		{Strategy: lock.FileLock, Resource: Resource(root), Locker: c, Records: c}}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close(context.Background())) })
	return m, c
}

// A lease over the file has a record that is renewed, blocks other clients and is removed with the lease.
func TestLeases(t *testing.T) {
	root := newRoot()
	m, c := newManager(t, root)
	other, _ := newManager(t, root)
	opts := lock.AcquireOptions{TTL: time.Minute, HeartbeatInterval: 200 * time.Millisecond}
	first, err := m.Acquire(t.Context(), opts)
	require.NoError(t, err)
	assert.Equal(t, root+"/.lock", first.Resource)

	opts.IfAvailable = true
	_, err = other.Acquire(t.Context(), opts)
	require.ErrorIs(t, err, lock.ErrFallbackConflict)
	assert.Contains(t, err.Error(), "held by somebody")

	var records []lock.Record
	require.Eventually(t, func() bool {
		records, err = c.Leases(t.Context())
		require.NoError(t, err)
		require.Len(t, records, 1)
		return records[0].ExpiresAt.After(first.ExpiresAt)
	}, prompt, 10*time.Millisecond, "the record is not renewed")
	require.NoError(t, first.Err())
	assert.Equal(t, first.ID, records[0].LeaseID)
	assert.Equal(t, first.Token, records[0].Token)

	opts.IfAvailable, opts.Steal = false, true
	second, err := other.Acquire(t.Context(), opts)
	require.NoError(t, err)
	assert.Greater(t, second.Token, first.Token)
	<-first.Done()
	require.ErrorIs(t, first.Err(), lock.ErrLost)
	require.NoError(t, second.Release(t.Context()))
	records, err = c.Leases(t.Context())
	require.NoError(t, err)
	assert.Empty(t, records)
}

// The tests above rely on the platform: an open file can be neither opened again nor removed. A client that could open
// a liveness file removes it right after it has closed it; the owner may have opened it in between.
func TestOpenFileIsNeitherOpenedNorRemoved(t *testing.T) {
	dir, err := NewDir(newRoot())
	require.NoError(t, err)
	file, err := dir.file(t.Context(), "f", true)
	require.NoError(t, err)
	h, err := openHandle(t.Context(), file)
	require.NoError(t, err)
	_, err = openHandle(t.Context(), file)
	assert.True(t, isNamed(err, inUse...), "%v", err)
	assert.True(t, isNamed(dir.remove(t.Context(), "f"), inUse...))
	h.close()
	require.NoError(t, dir.remove(t.Context(), "f"))
}
