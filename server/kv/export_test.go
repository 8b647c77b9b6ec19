package kv

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"golang.org/x/sync/errgroup"
)

// ReserveSize returns the size of the reserve file.
func ReserveSize() int64 { return reserveSize() }

// SetSizes makes log segments, the growth of the database and the number of entries between snapshots smaller for one
// test.
func SetSizes(t *testing.T, segment, grow int64, snapshots uint64) {
	formerSegment, formerGrowth, formerSnapshots := wal.SegmentSizeBytes, growth, snapshotCount
	wal.SegmentSizeBytes, growth, snapshotCount = segment, grow, snapshots
	t.Cleanup(func() { wal.SegmentSizeBytes, growth, snapshotCount = formerSegment, formerGrowth, formerSnapshots })
}

// SetDefrag makes a start shrink the database when it has fewer free megabytes than usual, for one test.
func SetDefrag(t *testing.T, megabytes uint) {
	former := defragMegabytes
	defragMegabytes = megabytes
	t.Cleanup(func() { defragMegabytes = former })
}

// Hold makes the transactions of a store wait. The returned function lets them go once a number of them waits. Nothing
// is late before that, however slow the machine is.
func Hold(s *Store) func(t *testing.T, waiting int) {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	s.queue.patience, s.timeout = time.Minute, time.Minute
	round := s.queue.begin()
	return func(t *testing.T, waiting int) {
		require.Eventually(t, func() bool {
			s.queue.mu.Lock()
			defer s.queue.mu.Unlock()
			return len(s.queue.waiting) == waiting
		}, time.Minute, time.Millisecond)
		s.roundEnded(round)
	}
}

// AssertGrowth checks that a number of commits of some bytes each leave less than a limit in memory.
func AssertGrowth(t *testing.T, s *Store, commits, size int, limit int64) {
	t.Helper()
	before := liveHeap()
	var group errgroup.Group
	group.SetLimit(30) // many changes must reach the disk at once
	for range commits {
		group.Go(func() error {
			_, err := s.Commit(t.Context(), Txn{Then: []Op{Put("k", make([]byte, size))}})
			return err
		})
	}
	require.NoError(t, group.Wait())
	assert.Less(t, liveHeap()-before, limit, "of %d bytes that were committed", size*commits)
}

func liveHeap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
