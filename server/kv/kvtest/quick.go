package kvtest

import (
	"net/url"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/holdfast-dev/holdfast/server/kv"
)

// Fill calls put with a store on a data directory and closes the store. The store does not sync to the disk. A store
// that is opened there later has the entries.
func Fill(t testing.TB, dir string, put func(*kv.Store)) {
	t.Helper()
	at := url.URL{Scheme: "unix", Path: filepath.Join(dir, "etcd.sock")}
	c := embed.NewConfig()
	c.Name, c.Dir, c.LogLevel, c.UnsafeNoFsync = "holdfast", dir, "fatal", true
	c.ListenClientUrls, c.AdvertiseClientUrls, c.ListenPeerUrls = []url.URL{at}, []url.URL{at}, nil
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.SnapshotCount, c.SnapshotCatchUpEntries = 100, 10 // otherwise gigabytes of the log stay in memory
	c.MaxTxnOps, c.QuotaBackendBytes = kv.MaxOps, 8<<30
	etcd, err := embed.StartEtcd(c)
	require.NoError(t, err)
	defer etcd.Close()
	<-etcd.Server.ReadyNotify()
	put(kv.OverServer(etcd.Server))
}
