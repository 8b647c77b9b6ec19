package server_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/audit"
)

// entriesOf reads an audit log.
func entriesOf(t *testing.T, path string) (list []audit.Entry) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		var e audit.Entry
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		list = append(list, e)
	}
	return list
}

// New rules and keys are in the log, also those that are not in use because they are broken.
func TestReloadsAreAudited(t *testing.T) {
	t.Parallel()
	var c server.Config
	s := start(t, func(config *server.Config) {
		config.APIKeys, config.Policy = writeFile(t, keyLine("root", "")), writeFile(t, "user:root * admin")
		config.Audit = filepath.Join(t.TempDir(), "audit.log")
		c = *config
	})
	s.Reload()
	require.NoError(t, os.WriteFile(c.Policy, []byte("user:root"), 0o600))
	s.Reload()
	var last audit.Entry
	reloads := map[string]int{}
	for _, e := range entriesOf(t, c.Audit) {
		if e.Event == audit.Reloaded {
			reloads[e.File]++
			if e.File == c.Policy {
				last = e
			}
		}
	}
	assert.GreaterOrEqual(t, reloads[c.APIKeys], 2)
	assert.GreaterOrEqual(t, reloads[c.Policy], 2)
	assert.Contains(t, last.Reason, "line 1")
}

// Requests of unknown clients with long methods and paths are in the log, but not whole. They would fill the disk.
func TestLongRequestsAreClippedInTheAuditLog(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.log")
	s := start(t, func(c *server.Config) {
		c.APIKeys, c.Audit = writeFile(t, keyLine("root", "")), path
	})
	long := strings.Repeat("x", 30<<10)
	assert.Equal(t, http.StatusUnauthorized, s.as(t, "wrong").do("GET", "/dav/"+long, nil).status)
	assert.Equal(t, http.StatusUnauthorized, s.as(t, "wrong").do(long, "/dav/x", nil).status)
	entries := entriesOf(t, path)
	require.Len(t, entries, 2)
	for _, e := range entries {
		assert.Equal(t, audit.Refused, e.Event)
		assert.Less(t, len(e.Path)+len(e.Method), 2<<10)
	}
}

func TestRefusalsOfRoomsAreAudited(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.log")
	s := start(t, func(c *server.Config) {
		c.Policy, c.Audit = writeFile(t, "anyone rooms/secret\nanyone rooms read write"), path
	})
	v := visit(t, s, newJar(t))
	v.send(map[string]any{"type": "enterTheRoom", "userName": "Ann", "roomId": "secret"})
	assert.Equal(t, "not_allowed", v.next("error")["error"])
	entries := entriesOf(t, path)
	require.Len(t, entries, 1)
	assert.Equal(t, audit.Refused, entries[0].Event)
	assert.Equal(t, [][]string{{"rooms", "secret"}}, entries[0].Paths)
	assert.Equal(t, "/ws", entries[0].Path)
	assert.NotEmpty(t, entries[0].HolderID)
}

// A socket that repeats what it may not do does not fill the audit log.
func TestRepeatedRefusalsOfASocketAreAuditedRarely(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.log")
	s := start(t, func(c *server.Config) {
		c.Policy, c.Audit = writeFile(t, "anyone rooms/secret\nanyone rooms read write"), path
	})
	v := visit(t, s, newJar(t))
	for range 150 {
		v.send(map[string]any{"type": "isExistTheRoom", "roomId": "secret"})
		assert.Equal(t, false, v.next("isExistTheRoomResult")["isExistTheRoom"])
	}
	entries := entriesOf(t, path)
	assert.NotEmpty(t, entries)
	assert.Less(t, len(entries), 100)
}

// A server that stops is not ready, and does everything else.
func TestAStoppingServerIsNotReady(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ann := s.as(t, "ann")
	require.Equal(t, http.StatusOK, ann.do("GET", "/readyz", nil).status)
	s.BeginStop()
	assert.Equal(t, http.StatusServiceUnavailable, ann.do("GET", "/readyz", nil).status)
	assert.Equal(t, http.StatusOK, ann.do("GET", "/healthz", nil).status)
	assert.Positive(t, ann.lock("r"))
}

// A signal after the log was renamed makes the server write a new one.
func TestReloadOpensTheAuditLogAnew(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.log")
	s := start(t, func(c *server.Config) {
		c.APIKeys, c.Audit = writeFile(t, keyLine("root", "")), path
	})
	require.NoError(t, os.Rename(path, path+".1"))
	s.Reload()
	entries := entriesOf(t, path)
	require.NotEmpty(t, entries)
	assert.Equal(t, audit.Reloaded, entries[0].Event)
}
