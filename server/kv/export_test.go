package kv

import (
	"testing"

	"go.etcd.io/etcd/server/v3/storage/wal"
)

// SetSizes makes log segments, the growth of the database and the number of entries between snapshots smaller for one
// test.
func SetSizes(t *testing.T, segment, grow int64, snapshots uint64) {
	formerSegment, formerGrowth, formerSnapshots := wal.SegmentSizeBytes, growth, snapshotCount
	wal.SegmentSizeBytes, growth, snapshotCount = segment, grow, snapshots
	t.Cleanup(func() { wal.SegmentSizeBytes, growth, snapshotCount = formerSegment, formerGrowth, formerSnapshots })
}
