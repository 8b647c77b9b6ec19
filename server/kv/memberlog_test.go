package kv

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// A member keeps applied entries in memory for followers that must catch up, but a bounded number of them.
func TestTheLogOfAMemberInMemoryIsBounded(t *testing.T) {
	s := openMember(t, byName(t))
	const size, commits, limit = 10 << 10, 6500, 45 << 20
	before := heapInUse()
	var group errgroup.Group
	group.SetLimit(30) // many changes must reach the disk at once
	for range commits {
		group.Go(func() error {
			_, err := s.Commit(t.Context(), Txn{Then: []Op{Put("k", make([]byte, size))}})
			return err
		})
	}
	require.NoError(t, group.Wait())
	assert.Less(t, heapInUse()-before, int64(limit), "of %d bytes that were committed", size*commits)
}

func heapInUse() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
