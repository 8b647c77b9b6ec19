package server_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
	"github.com/holdfast-dev/holdfast/server/servertest"
)

// Two deployments share a cluster: neither sees the locks, the contents or the events of the other one.
func TestDeploymentsShareACluster(t *testing.T) {
	t.Parallel()
	cluster := kvtest.Open(t)
	deployment := func(prefix string) client {
		return start(t, func(c *server.Config) {
			c.Etcd, c.Blobs, c.Prefix = []string{cluster.Endpoint()}, t.TempDir(), prefix
			c.APIKeys, c.Policy = writeFile(t, keyLine("root", "")), writeFile(t, backupRules)
		}).as(t, "root-key")
	}
	one, two := deployment("app"), deployment("app2")
	for text, c := range map[string]client{"first": one, "second": two} {
		require.Equal(t, http.StatusOK, c.save("r", c.lock("r"), text).status)
	}
	assert.Equal(t, "first", string(one.do("GET", contentOf("r"), nil).text))
	assert.Equal(t, "second", string(two.do("GET", contentOf("r"), nil).text))
	require.Equal(t, http.StatusOK, one.do("DELETE", lockOf("r"), nil).status)
	assert.Equal(t, false, one.do("GET", lockOf("r"), nil).body["is_locked"])
	assert.Equal(t, true, two.do("GET", lockOf("r"), nil).body["is_locked"])

	keys, err := cluster.Keys(t.Context(), "")
	require.NoError(t, err)
	for _, key := range keys {
		assert.Regexp(t, "^app2?/", key)
	}
	assertError(t, one.do("GET", "/api/backup", nil), http.StatusConflict, "shared_store")
}

// Two deployments with one directory of contents would delete each other's contents as garbage. The second one is
// refused at its first start, also before the first one has saved anything.
func TestDeploymentsShareNoContents(t *testing.T) {
	t.Parallel()
	cluster, contents := kvtest.Open(t), t.TempDir()
	config := func(prefix string) server.Config {
		c := servertest.Config(t)
		c.DataDir, c.Etcd, c.Blobs, c.Prefix = "", []string{cluster.Endpoint()}, contents, prefix
		return c
	}
	startWith(t, config("one")).Stop(t)
	_, err := server.Start(t.Context(), config("two"), nil)
	require.ErrorContains(t, err, "another store")
	startWith(t, config("one")).Stop(t)
}
