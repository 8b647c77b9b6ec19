package kv

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/holdfast-dev/holdfast/internal/loopback"
)

// A member stops after it has joined but before it is a full member. Its next start promotes it, so that a third one
// may join.
func TestLearnerIsPromotedAtItsNextStart(t *testing.T) {
	first := Member{PeerURL: freeURL(t), ClientURL: freeURL(t)}
	cluster := openMember(t, first)
	second, err := Config{DataDir: shortDir(t), Member: Member{PeerURL: freeURL(t), Join: []string{first.ClientURL}}}.withDefaults()
	require.NoError(t, err)
	settings := etcdConfig(second, second.DataDir, second.DataDir+"/"+socketName)
	settings.LogLevel = "fatal"
	require.NoError(t, joinCluster(t.Context(), second, second.DataDir, settings))
	learner, err := embed.StartEtcd(settings)
	require.NoError(t, err)
	<-learner.Server.ReadyNotify()
	require.True(t, learner.Server.IsLearner())
	learner.Close()

	s, err := Open(t.Context(), second)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	openMember(t, Member{PeerURL: freeURL(t), Join: []string{first.ClientURL}})
	members, err := cluster.members(t.Context())
	require.NoError(t, err)
	assert.Len(t, members, 3)
	for _, m := range members {
		assert.False(t, m.IsLearner)
	}
}

func openMember(t *testing.T, m Member) *Store {
	t.Helper()
	s, err := Open(t.Context(), Config{DataDir: shortDir(t), Member: m})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// shortDir returns an empty directory with a path short enough for a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "kv")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

func freeURL(t *testing.T) string {
	t.Helper()
	port, err := loopback.FreePort()
	require.NoError(t, err)
	return "http://127.0.0.1:" + port
}

// A member is stopped in its first start, after etcd has made its folder and before there is a log. Its next start joins the cluster; otherwise the
// member would be an empty cluster of its own, which grants locks that others hold.
func TestAJoinThatWasCutShortContinues(t *testing.T) {
	first := Member{PeerURL: freeURL(t), ClientURL: freeURL(t)}
	cluster := openMember(t, first)
	_, err := cluster.Commit(t.Context(), Txn{Then: []Op{Put("key", []byte("value"))}})
	require.NoError(t, err)
	dir := shortDir(t)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "member", "snap"), 0o700))
	s, err := Open(t.Context(), Config{DataDir: dir, Member: Member{PeerURL: freeURL(t), Join: []string{first.ClientURL}}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	e, _, err := s.Get(t.Context(), "key")
	require.NoError(t, err)
	assert.Equal(t, "value", string(e.Value))
}

// A member whose log is lost neither begins a new cluster over its database nor joins with it.
func TestAMemberWithoutItsLogDoesNotStart(t *testing.T) {
	m := Member{PeerURL: freeURL(t), ClientURL: freeURL(t)}
	dir := shortDir(t)
	s, err := Open(t.Context(), Config{DataDir: dir, Member: m})
	require.NoError(t, err)
	_, err = s.Commit(t.Context(), Txn{Then: []Op{Put("key", []byte("value"))}})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "member", "wal")))
	for _, join := range [][]string{nil, {freeURL(t)}} {
		m.Join = join
		_, err = Open(t.Context(), Config{DataDir: dir, Member: m})
		require.ErrorContains(t, err, "are damaged (member/wal is missing)")
	}
}
