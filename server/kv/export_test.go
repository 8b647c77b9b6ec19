package kv

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/server/v3/storage/wal"
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

// Hold makes the transactions of a store wait. The returned function lets them go once a number of them waits. Nothing
// is late before that, however slow the machine is.
func Hold(s *Store) func(t *testing.T, waiting int) {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	s.queue.patience, s.timeout = time.Minute, time.Minute
	flight := s.queue.begin()
	return func(t *testing.T, waiting int) {
		require.Eventually(t, func() bool {
			s.queue.mu.Lock()
			defer s.queue.mu.Unlock()
			return len(s.queue.waiting) == waiting
		}, time.Minute, time.Millisecond)
		s.landed(flight)
	}
}
