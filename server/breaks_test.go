package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/remote"
	"github.com/holdfast-dev/holdfast/server"
)

const breakRules = `
	anyone     documents/secret
	user:root  *  lock write break
	user:ann   *  read lock write
	user:bob   *  read lock
`

func TestBreakingALock(t *testing.T) {
	t.Parallel()
	s := startWithUsers(t, breakRules)
	root, ann, bob := s.as(t, "root-key"), s.as(t, "ann-key"), s.as(t, "bob-key")
	held := ann.do("POST", lockOf("r")+"?ticket=t1", nil)
	require.Equal(t, http.StatusOK, held.status)
	conn, _, err := websocket.Dial(t.Context(), s.URL+"/api/documents/r/events", &websocket.DialOptions{
		HTTPHeader: http.Header{"Authorization": {"Bearer bob-key"}}})
	require.NoError(t, err)
	defer conn.CloseNow()
	events := stream{t, conn}
	waiting := make(chan answer, 1)
	go func() { waiting <- bob.do("POST", lockOf("r")+"?wait_ms=20000", nil) }()
	bob.seesWaiting("documents/r", 1)

	reason := map[string]any{"reason": "she is on holiday"}
	assertError(t, bob.do("POST", lockOf("r")+"/break", reason), http.StatusForbidden, "not_allowed")
	for _, wrong := range []any{map[string]any{}, map[string]any{"reason": ""}, map[string]any{"reason": strings.Repeat("x", 1025)}} {
		assertError(t, root.do("POST", lockOf("r")+"/break", wrong), http.StatusBadRequest, "invalid_request")
	}
	require.Equal(t, http.StatusOK, root.do("POST", lockOf("r")+"/break", reason).status)
	e := events.next()
	if e["type"] == remote.NoticeLocked { // ann's lock, which a slow server noticed after the stream began
		e = events.next()
	}
	assert.Equal(t, remote.NoticeUnlocked, e["type"])
	assert.Equal(t, "broken", e["reason"])
	assert.Equal(t, "root", e["by_name"])
	assert.Equal(t, "she is on holiday", e["why"])
	assert.NotEmpty(t, e["by_id"])
	assert.InDelta(t, held.token(), e["token"], 0)
	granted := <-waiting
	require.Equal(t, http.StatusOK, granted.status, string(granted.text))
	assertError(t, ann.do("PUT", lockOf("r"), nil), http.StatusForbidden, "not_locked_by_user")
	require.Equal(t, http.StatusOK, bob.do("DELETE", lockOf("r"), nil).status)
	assertError(t, ann.do("POST", lockOf("r")+"?ticket=t1", nil), http.StatusConflict, "given_up")
	assertError(t, root.do("POST", lockOf("free")+"/break", reason), http.StatusNotFound, "lock_not_found")
}

// A lock on several places is broken by its id, which those see who may break it.
func TestBreakingALockOnPlaces(t *testing.T) {
	t.Parallel()
	s := startWithUsers(t, breakRules)
	root, ann, bob := s.as(t, "root-key"), s.as(t, "ann-key"), s.as(t, "bob-key")
	id, _ := ann.do("POST", "/api/locks", map[string]any{"paths": [][]string{{"a"}, {"b"}}}).body["lease_id"].(string)
	seen := func(c client) any {
		holders := c.do("GET", "/api/locks?path=a", nil).body["holders"].([]any)
		require.Len(t, holders, 1)
		return holders[0].(map[string]any)["lease_id"]
	}
	assert.Nil(t, seen(bob))
	require.Equal(t, id, seen(root))
	reason := map[string]any{"reason": "it hangs"}
	assertError(t, bob.do("POST", "/api/locks/"+id+"/break", reason), http.StatusForbidden, "not_allowed")
	require.Equal(t, http.StatusOK, root.do("POST", "/api/locks/"+id+"/break", reason).status)
	assertError(t, ann.do("PUT", "/api/locks/"+id, nil), http.StatusNotFound, "lock_not_found")
	for _, gone := range []string{id, "no-such.YQ", "x"} {
		assertError(t, root.do("POST", "/api/locks/"+gone+"/break", reason), http.StatusNotFound, "lock_not_found")
	}
}

func TestAnonymousServersBreakNothing(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	require.Equal(t, http.StatusOK, s.as(t, "ann").do("POST", lockOf("r"), nil).status)
	assertError(t, s.as(t, "bob").do("POST", lockOf("r")+"/break", map[string]any{"reason": "x"}), http.StatusForbidden, "not_allowed")
}

func TestAuditLog(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.log")
	s := start(t, func(c *server.Config) {
		c.APIKeys, c.Policy = writeFile(t, keyLine("root", "")+keyLine("ann", "")), writeFile(t, "user:root * admin\nuser:ann documents read lock write")
		c.Audit = path
	})
	root, ann := s.as(t, "root-key"), s.as(t, "ann-key")
	saved := ann.with(remote.HeaderToken, fmt.Sprint(ann.do("POST", lockOf("r"), nil).token())).do("PUT", "/api/documents/r/content", nil)
	require.Equal(t, http.StatusOK, saved.status)
	assertError(t, ann.do("POST", lockOf("r")+"/break?holder_name=secret", map[string]any{"reason": "x"}), http.StatusForbidden, "not_allowed")
	assertError(t, s.as(t, "eve-key").do("GET", lockOf("r"), nil), http.StatusUnauthorized, "unauthenticated")
	require.Equal(t, http.StatusOK, root.do("POST", lockOf("r")+"/break", map[string]any{"reason": "she left"}).status)
	assertError(t, ann.do("DELETE", "/api/documents/r", nil), http.StatusBadRequest, "invalid_request")
	require.Equal(t, http.StatusOK, root.do("DELETE", "/api/documents/r", nil).status)
	assertError(t, ann.do("GET", "/api/documents/r/content", nil), http.StatusNotFound, "document_not_found")

	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.NotContains(t, string(text), "key")
	assert.NotContains(t, string(text), "secret")
	var lines []string
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		var e struct{ Event, User, Method, Path, Holder, Reason string }
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		lines = append(lines, strings.TrimSpace(fmt.Sprint(e.Event, " ", e.User, " ", e.Method, " ", e.Path, " ", e.Holder, " ", e.Reason)))
	}
	assert.Equal(t, []string{
		"signed-in ann POST /api/documents/r/lock", "refused ann POST /api/documents/r/lock/break", "refused  GET /api/documents/r/lock",
		"signed-in root POST /api/documents/r/lock/break", "break root POST /api/documents/r/lock/break ann she left", "delete root DELETE /api/documents/r",
	}, lines)
}

// A lock is not broken if the audit log cannot be written.
func TestNothingIsBrokenWithoutTheAuditLog(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) {
		c.APIKeys, c.Policy, c.Audit = writeFile(t, keyLine("root", "")+keyLine("ann", "")), writeFile(t, "signed-in * admin"), "/dev/full"
	})
	root, ann := s.as(t, "root-key"), s.as(t, "ann-key")
	require.Equal(t, http.StatusOK, ann.do("POST", lockOf("r"), nil).status, "the rest goes on")
	assertError(t, root.do("POST", lockOf("r")+"/break", map[string]any{"reason": "x"}), http.StatusServiceUnavailable, "unavailable")
	require.Equal(t, http.StatusOK, ann.do("PUT", lockOf("r"), nil).status)
}
