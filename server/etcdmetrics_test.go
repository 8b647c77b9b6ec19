package server_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server"
)

// The server has the figures of the etcd that runs in it, each once.
func TestMetricsOfTheEmbeddedStore(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ann := s.as(t, "ann")
	ann.lock("r")
	metrics := string(ann.do("GET", "/metrics", nil).text)
	for _, name := range []string{"etcd_disk_wal_fsync_duration_seconds_bucket", "etcd_disk_backend_commit_duration_seconds_count",
		"etcd_mvcc_db_total_size_in_bytes", "etcd_server_has_leader", "etcd_server_leader_changes_seen_total", "etcd_server_proposals_committed_total"} {
		assert.Regexp(t, `(?m)^`+name+`[ {]`, metrics)
	}
	families := map[string]bool{}
	for _, family := range regexp.MustCompile(`(?m)^# TYPE (\S+)`).FindAllStringSubmatch(metrics, -1) {
		assert.False(t, families[family[1]], "%s comes twice", family[1])
		families[family[1]] = true
	}
	require.True(t, families["go_goroutines"])
	for name := range families {
		assert.Regexp(t, `^(holdfast|etcd|go|process)_`, name)
	}

	other := s.another(t, nil).as(t, "ann").do("GET", "/metrics", nil)
	assert.NotContains(t, string(other.text), "\netcd_", "an external etcd has metrics of its own")
	apart := start(t, func(c *server.Config) { c.MetricsApart = true }).as(t, "ann").do("GET", "/metrics", nil)
	assert.False(t, strings.Contains(string(apart.text), "etcd_"), "only the other address serves them")
}
