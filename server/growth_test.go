package server_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
)

// From one server with its own store to three, as docs/operations.md has it: nothing is lost, and any one may go.
func TestGrowingToThreeNodes(t *testing.T) {
	t.Parallel()
	alone := server.DefaultConfig()
	alone.DataDir = kvtest.Dir(t)
	s := startWith(t, alone)
	ann := s.as(t, "ann").named("Ann")
	tokens := map[string]int64{}
	for i := range 20 {
		room := fmt.Sprint("r", i)
		tokens[room] = ann.lock(room)
		require.Equal(t, http.StatusOK, ann.save(room, tokens[room], "text of "+room).status)
	}
	path := ann.do("POST", "/api/locks", object{"paths": [][]string{{"p", "q"}}, "ttl_ms": 60000})
	require.Equal(t, http.StatusOK, path.status)
	s.stop(t)

	// 1. The same node again, now with addresses for others.
	grown := alone
	grown.PeerURL, grown.ClientURL = kvtest.FreeURL(t), kvtest.FreeURL(t)
	nodes := []*instance{startWith(t, grown)}
	// 2. and 3. Two more with empty directories.
	for range 2 {
		c := server.DefaultConfig()
		c.DataDir, c.PeerURL, c.Join = kvtest.Dir(t), kvtest.FreeURL(t), []string{grown.ClientURL}
		nodes = append(nodes, startWith(t, c))
	}
	check := func(nodes []*instance) {
		t.Helper()
		for _, n := range nodes {
			bob, ann := n.as(t, "bob"), n.as(t, "ann")
			for room, token := range tokens {
				shown := bob.do("GET", lockOf(room), nil)
				assert.Equal(t, token, shown.token(), room)
				assert.Equal(t, "Ann", shown.body["holder_name"])
				assert.Equal(t, "text of "+room, string(bob.do("GET", contentOf(room), nil).text))
			}
			assert.Equal(t, http.StatusConflict, bob.do("POST", lockOf("r0"), nil).status)
			assert.Equal(t, http.StatusOK, ann.do("PUT", "/api/locks/"+path.body["lease_id"].(string), nil).status)
		}
	}
	check(nodes)

	// The first node goes, and with it perhaps the leader: the others carry on, and expiry is on time.
	events := nodes[1].events(t, "brief", "")
	brief := nodes[2].as(t, "eve")
	request := object{"paths": [][]string{{"documents", "brief"}}, "ttl_ms": shortTTL.Milliseconds()}
	sent := time.Now()
	require.Equal(t, http.StatusOK, brief.do("POST", "/api/locks", request).status)
	answered := time.Now()
	nodes[0].stop(t)
	assertUnlocked(t, events, sent, answered)
	check(nodes[1:])
	for _, token := range tokens {
		assert.Greater(t, nodes[1].as(t, "eve").lock("new"), token)
	}
}
