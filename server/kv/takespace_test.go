package kv

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/server/v3/storage/wal"
)

// Contents that are being written at once leave the space that the store needs itself, although none of them is on the disk yet.
func TestContentsAtOnceLeaveSpaceForTheStore(t *testing.T) {
	const more = 1 << 40                                    // than any other program takes or frees meanwhile
	SetSizes(t, wal.SegmentSizeBytes, -more, snapshotCount) // as if the disk had so much more space
	s, err := Open(t.Context(), Config{DataDir: shortDir(t)})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	free := freeOn(s.embedded.dir)
	if free < 0 {
		t.Skip("the free space is unknown here")
	}
	first, ok := s.TakeSpace(more / 2)
	require.True(t, ok)
	_, ok = s.TakeSpace(more)
	require.False(t, ok, "with the first one")
	second, ok := s.TakeSpace(more / 4)
	require.True(t, ok, "what was refused takes nothing")
	first()
	second()
	assert.Zero(t, s.embedded.taken.Load())
	_, ok = s.TakeSpace(free + 2*more)
	assert.False(t, ok)
}

// The maintainer does not wait for its next measurement when another program has filled the disk while the reserve is there.
func TestFullDiskIsNoticedBeforeTheNextMeasurement(t *testing.T) {
	dir := t.TempDir()
	if freeOn(dir) < 0 {
		t.Skip("the free space is unknown here")
	}
	for _, c := range []struct {
		segment int64
		holds   bool
		waits   time.Duration
	}{{1 << 60, true, shortInterval}, {1 << 60, false, measureInterval}, {0, true, measureInterval}} {
		SetSizes(t, c.segment, growth, snapshotCount)
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			require.NoError(t, (&spaceMaintainer{dir: dir, holds: c.holds}).waitForNext(t.Context()))
			assert.Equal(t, c.waits, time.Since(begun), "%+v", c)
		})
	}
}
