package kv

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// newMaintainer opens an empty store, and returns a maintainer of the space in place of the store's own.
func newMaintainer(t *testing.T, config Config, quota int64) *spaceMaintainer {
	t.Helper()
	config.DataDir = t.TempDir()
	s, err := Open(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	s.embedded.keeping() // the test takes its place
	return &spaceMaintainer{s: s, dir: config.DataDir, quota: quota, log: slog.New(slog.DiscardHandler)}
}

// The alarm of another member stays for as long as that member has no space, whatever this one does. This member does not shrink its file
// again and again, which blocks the store each time.
func TestAnAlarmThatStaysDoesNotBlockTheStore(t *testing.T) {
	first := byName(t)
	k := newMaintainer(t, Config{Member: first}, 1<<30)
	s := k.s
	second := openMember(t, byName(t, first.ClientURL))
	second.embedded.keeping() // it does not end its alarm
	for i := range 10 {
		_, err := s.Commit(t.Context(), Txn{Then: []Op{Put(fmt.Sprint(i), make([]byte, 10_000))}})
		require.NoError(t, err)
	}
	other := uint64(second.embedded.etcd.Server.MemberID())
	_, err := s.embedded.etcd.Server.Alarm(t.Context(), &pb.AlarmRequest{Action: pb.AlarmRequest_ACTIVATE, Alarm: pb.AlarmType_NOSPACE, MemberID: other})
	require.NoError(t, err)
	shrunk := 0
	for i := range 5 {
		_, err := s.Commit(t.Context(), Txn{Then: []Op{Delete(fmt.Sprint(i))}})
		require.NoError(t, err)
		before, err := os.Stat(filepath.Join(k.dir, "member", "snap", "db"))
		require.NoError(t, err)
		require.NoError(t, k.reclaim(t.Context(), Space{Used: 1 << 20, Size: 2 << 20}))
		after, err := os.Stat(filepath.Join(k.dir, "member", "snap", "db"))
		require.NoError(t, err)
		if !os.SameFile(before, after) {
			shrunk++
		}
	}
	assert.Equal(t, 1, shrunk)

	for _, seconds := range []int{2, 4, 8, 16, 32, 60, 60} { // a store that becomes free little by little does not wait long
		k.rest = time.Now()
		require.NoError(t, k.reclaim(t.Context(), Space{Used: 1 << 20, Size: 2 << 20}))
		assert.Equal(t, time.Duration(seconds)*time.Second, k.pause)
	}
	k.left = 2 << 20
	require.NoError(t, k.reclaim(t.Context(), Space{Used: 1 << 20, Size: 2 << 20}))
	assert.Equal(t, time.Second, k.pause, "much was deleted")
	require.NoError(t, k.reclaim(t.Context(), Space{Used: 2 << 20, Size: 2 << 20}))
	assert.Zero(t, k.pause, "nothing can shrink")
}

// The store is full, and the maintainer shrinks the file before anything is free in it. Then space becomes free, and the maintainer shrinks the file
// without a pause: until it does, the store refuses every lock.
func TestFreedSpaceEndsThePauseAfterAUselessShrink(t *testing.T) {
	const quota = 8 << 20
	k := newMaintainer(t, Config{Quota: quota}, quota)
	s := k.s
	put := func(i, size int) error {
		_, err := s.Commit(t.Context(), Txn{Then: []Op{Put(fmt.Sprint("big/", i), make([]byte, size))}})
		return err
	}
	n := 0
	fill := func() {
		var err error
		for ; err == nil; n++ {
			err = put(n, 16<<10)
		}
		require.ErrorIs(t, err, ErrFull)
	}
	fill()
	full := k.measure(true)
	full.Size = full.Used + 1 // something is free in most files
	require.NoError(t, k.reclaim(t.Context(), full))
	require.False(t, k.rest.IsZero(), "it has tried")
	fill()
	k.rest = time.Now().Add(time.Hour) // the file is large

	_, err := s.Commit(t.Context(), Txn{Then: []Op{DeleteUnder("big/")}})
	require.NoError(t, err)
	_, revision, err := s.Get(t.Context(), "ready")
	require.NoError(t, err)
	require.NoError(t, s.Compact(t.Context(), revision))
	require.Eventually(t, func() bool { return k.measure(true).Used < quota/2 }, 30*time.Second, 10*time.Millisecond)
	require.NoError(t, k.reclaim(t.Context(), k.measure(true)))
	assert.NoError(t, put(0, 1))
}

// Nothing changes in a full store, so each compaction finds that the last one was enough. The maintainer goes on: it shrinks the file, ends the
// alarm, and logs no failure.
func TestAQuietFullStoreIsCompactedAgain(t *testing.T) {
	k := newMaintainer(t, Config{}, 1<<30)
	s := k.s
	_, err := s.Commit(t.Context(), Txn{Then: []Op{Put("a", nil)}})
	require.NoError(t, err)
	full := Space{Used: 1 << 30, Size: 1 << 30, Full: true}
	require.NoError(t, k.reclaim(t.Context(), full))
	server := s.embedded.etcd.Server
	_, err = server.Alarm(t.Context(), &pb.AlarmRequest{Action: pb.AlarmRequest_ACTIVATE, Alarm: pb.AlarmType_NOSPACE, MemberID: uint64(server.MemberID())})
	require.NoError(t, err)
	k.compacted = time.Time{} // long ago
	require.NoError(t, k.reclaim(t.Context(), full))
	assert.False(t, k.alarmed())
}

// The store removes old snapshots and log segments, and etcd does not: of two that remove the same file, etcd would be the one that ends the process.
// The latest snapshot may be incomplete, so the one before it stays, however little space is left. The segment that is in use stays, too.
func TestOnlyTheStoreRemovesFiles(t *testing.T) {
	k := newMaintainer(t, Config{}, 1<<30)
	assert.Zero(t, k.s.embedded.etcd.Config().MaxSnapFiles)
	assert.Zero(t, k.s.embedded.etcd.Config().MaxWalFiles)
	snapshots, segments := filepath.Join(k.dir, "member", "snap"), filepath.Join(k.dir, "member", "wal")
	for i := range 8 {
		require.NoError(t, os.WriteFile(filepath.Join(snapshots, fmt.Sprintf("%d.snap", i)), nil, 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(segments, fmt.Sprintf("-%d.wal", i)), nil, 0o600)) // older than the one in use
	}
	names := func(pattern string) []string {
		list, err := filepath.Glob(pattern)
		require.NoError(t, err)
		return list
	}
	used := names(filepath.Join(segments, "0*.wal"))
	left := func(free int64) (int, int) {
		require.NoError(t, k.prune(Space{Free: free}))
		kept, log := names(filepath.Join(snapshots, "*.snap")), names(filepath.Join(segments, "*.wal"))
		assert.Equal(t, filepath.Join(snapshots, "7.snap"), kept[len(kept)-1])
		assert.Equal(t, used[0], log[len(log)-1])
		return len(kept), len(log)
	}
	for _, c := range []struct {
		free                int64
		snapshots, segments int
	}{
		{1 << 40, keptSnapshots, keptSegments},
		{-1, keptSnapshots, keptSegments}, // the free space is unknown
		{0, 2, 1},
	} {
		snapshots, segments := left(c.free)
		assert.Equal(t, c.snapshots, snapshots)
		assert.Equal(t, c.segments, segments)
	}
}

// A store is full, and its keys change again and again. The store compacts their history again when it has grown after a compaction, not only
// when the store has more in use than before that compaction.
func TestHistoryLeavesSpaceForChanges(t *testing.T) {
	const quota, mib = 64 << 20, 1 << 20
	k := newMaintainer(t, Config{}, quota)
	compacts := func(used int64) bool {
		now := time.Now()
		k.compacted = now // the last ten seconds are not over
		require.NoError(t, k.reclaim(t.Context(), Space{Used: used, Size: used, Quota: quota, Full: true}))
		return k.compacted != now
	}
	assert.True(t, compacts(75*mib))
	assert.False(t, compacts(62*mib), "it has freed pages")
	assert.True(t, compacts(67*mib))
}
