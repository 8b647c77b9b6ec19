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

// The alarm of another member stays for as long as that member has no space, whatever this one does. This member does not shrink its file
// again and again, which blocks the store each time.
func TestAnAlarmThatStaysDoesNotBlockTheStore(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(t.Context(), Config{DataDir: dir})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	s.embedded.keeping() // the test takes its place
	k := &keeper{s: s, dir: dir, quota: 1 << 30, log: slog.New(slog.DiscardHandler)}
	for i := range 10 {
		_, err := s.Commit(t.Context(), Txn{Then: []Op{Put(fmt.Sprint(i), make([]byte, 10_000))}})
		require.NoError(t, err)
	}
	other := uint64(s.embedded.etcd.Server.MemberID()) + 1
	_, err = s.embedded.etcd.Server.Alarm(t.Context(), &pb.AlarmRequest{Action: pb.AlarmRequest_ACTIVATE, Alarm: pb.AlarmType_NOSPACE, MemberID: other})
	require.NoError(t, err)
	shrunk := 0
	for i := range 5 {
		_, err := s.Commit(t.Context(), Txn{Then: []Op{Delete(fmt.Sprint(i))}})
		require.NoError(t, err)
		before, err := os.Stat(filepath.Join(dir, "member", "snap", "db"))
		require.NoError(t, err)
		require.NoError(t, k.reclaim(t.Context(), Space{Used: 1 << 20, Size: 2 << 20}))
		after, err := os.Stat(filepath.Join(dir, "member", "snap", "db"))
		require.NoError(t, err)
		if !os.SameFile(before, after) {
			shrunk++
		}
	}
	assert.Equal(t, 1, shrunk)

	for _, pause := range []time.Duration{2, 4, 8, 16, 32, 60, 60} { // seconds; a store that becomes free little by little does not wait long
		k.rest = time.Now()
		require.NoError(t, k.reclaim(t.Context(), Space{Used: 1 << 20, Size: 2 << 20}))
		assert.Equal(t, pause*time.Second, k.pause)
	}
	k.tried = 1<<20 + growth
	require.NoError(t, k.reclaim(t.Context(), Space{Used: 1 << 20, Size: 2 << 20}))
	assert.Equal(t, time.Second, k.pause, "much was deleted")
	require.NoError(t, k.reclaim(t.Context(), Space{Used: 2 << 20, Size: 2 << 20}))
	assert.Zero(t, k.pause, "nothing can shrink")
}
