package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/locks"
	"github.com/holdfast-dev/holdfast/server/sessions"
)

// wopi sends an operation with the lock ids that it takes, and returns the answer.
func (c client) wopi(operation, lock, old string, body any) answer {
	c.t.Helper()
	c = c.with("X-WOPI-Override", operation)
	if lock != "" {
		c = c.with("X-WOPI-Lock", lock)
	}
	if old != "" {
		c = c.with("X-WOPI-OldLock", old)
	}
	path := "/wopi/files/plan.docx"
	if operation == "PUT" {
		path += "/contents"
	}
	return c.do("POST", path, body)
}

// step is an operation and its expected result. locked is the lock id that the answer names.
type step struct {
	operation, lock, old string
	status               int
	locked               string
}

// The published cases have no wrong ids.
func TestWOPIRefusesWrongIDs(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ann := s.as(t, "ann")
	ann.status(http.StatusCreated, "PUT /dav/plan.docx text")
	long := strings.Repeat("1234567890123456", 64)
	for i, step := range []step{
		{"LOCK", "", "", 400, ""}, {"LOCK", long + "x", "", 400, ""}, {"UNLOCK", "", "", 400, ""}, {"REFRESH_LOCK", "a", "", 409, ""}, {"LOCK", "\xff", "", 400, ""},
		{"LOCK", "b", "a", 409, ""}, {"PUT", "a", "", 409, ""}, {"PUT_RELATIVE", "", "", 501, ""}, {"DELETE", "", "", 501, ""},
		{"LOCK", long, "", 200, ""}, {"GET_LOCK", "", "", 200, long}, {"UNLOCK", long, "", 200, ""},
	} {
		a := ann.wopi(step.operation, step.lock, step.old, "content")
		require.Equal(t, step.status, a.status, "step %d: %s", i+1, a.text)
		assert.Equal(t, step.locked, a.header.Get("X-WOPI-Lock"), "step %d", i+1)
	}
}

// Web editors, desktop programs and office suites exclude each other. All users of one suite share its lock.
func TestWOPISharesTheLockWithOtherInterfaces(t *testing.T) {
	t.Parallel()
	s := startWithUsers(t, "user:ann * read lock write\nuser:bob documents/plan.docx read lock write\nuser:bob documents/open read\nuser:root * read lock write")
	ann, bob := s.as(t, "ann-key"), s.as(t, "").with("X-Unused", "")
	ann.status(http.StatusCreated, "PUT /dav/plan.docx text", "PUT /dav/open text", "PUT /dav/hidden text")
	byToken := func(key, rest string) string { return "/wopi/files/" + rest + "?access_token=" + key }

	require.Equal(t, http.StatusOK, ann.wopi("LOCK", "co-editing", "", nil).status)
	post := bob.with("X-WOPI-Override", "PUT").with("X-WOPI-Lock", "co-editing").do("POST", byToken("bob-key", "plan.docx/contents"), "by bob")
	require.Equal(t, http.StatusOK, post.status, string(post.text))
	assert.Equal(t, "by bob", string(bob.do("GET", byToken("bob-key", "plan.docx/contents"), nil).text))
	denied := ann.do("POST", lockOf("plan.docx"), nil)
	assertError(t, denied, http.StatusConflict, "already_locked")
	assert.Equal(t, "ann", denied.body["holder_name"])
	ann.status(http.StatusLocked, "PUT /dav/plan.docx no")
	require.Equal(t, http.StatusOK, ann.wopi("UNLOCK", "co-editing", "", nil).status)

	// A new lock takes the place of the old one, although somebody waits. The one who waits gets the lock after the last.
	require.Equal(t, http.StatusOK, ann.wopi("LOCK", "one", "", nil).status)
	granted := make(chan answer, 1)
	go func() {
		a, err := ann.try(t.Context(), "POST", lockOf("plan.docx")+"?wait_ms=30000", nil)
		assert.NoError(t, err)
		granted <- a
	}()
	ann.seesWaiting("documents/plan.docx", 1)
	require.Equal(t, http.StatusOK, ann.wopi("LOCK", "two", "one", nil).status)
	assert.Equal(t, "two", ann.wopi("GET_LOCK", "", "", nil).header.Get("X-WOPI-Lock"))
	require.Equal(t, http.StatusOK, ann.wopi("PUT", "two", "", "still ours").status)
	require.Equal(t, http.StatusOK, ann.wopi("UNLOCK", "two", "", nil).status)
	held := (<-granted).token()
	for _, operation := range []string{"LOCK", "UNLOCK", "REFRESH_LOCK", "GET_LOCK", "PUT"} {
		a := ann.wopi(operation, "co-editing", "", nil)
		assertError(t, a, http.StatusConflict, "lock_mismatch")
		assert.Equal(t, []string{""}, a.header.Values("X-WOPI-Lock"), operation)
		assert.NotEmpty(t, a.header.Get("X-WOPI-LockFailureReason"))
	}
	require.Equal(t, http.StatusOK, ann.save("plan.docx", held, "from the web").status)
	ann.do("DELETE", lockOf("plan.docx"), nil)

	info := bob.do("GET", byToken("bob-key", "open"), nil)
	require.Equal(t, http.StatusOK, info.status, string(info.text))
	assert.Equal(t, "open", info.body["BaseFileName"])
	assert.Equal(t, "bob", info.body["UserFriendlyName"])
	assert.Equal(t, false, info.body["UserCanWrite"])
	for _, path := range []string{"hidden", "none", "a%2Fb", "hidden/contents", "none/contents"} {
		assertError(t, bob.do("GET", byToken("bob-key", path), nil), http.StatusNotFound, "document_not_found")
	}
	bob.status(http.StatusUnauthorized, "GET /wopi/files/open", "GET "+byToken("wrong", "open"), "GET "+byToken("wrong", "open/contents"))
	assertError(t, bob.with("X-WOPI-Override", "LOCK").with("X-WOPI-Lock", "x").do("POST", byToken("bob-key", "open"), nil), http.StatusForbidden, "not_allowed")
}

// An empty file is filled without a lock. The version changes with each save, and a lock does not change it.
func TestWOPIVersions(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) { c.MaxContent = 100 })
	ann := s.as(t, "ann")
	ann.status(http.StatusCreated, "PUT /dav/plan.docx")
	require.Equal(t, http.StatusOK, ann.wopi("PUT", "", "", "filled").status)
	version := func() string { return ann.do("GET", "/wopi/files/plan.docx", nil).body["Version"].(string) }
	first := version()
	assert.Equal(t, first, ann.wopi("LOCK", "a", "", nil).header.Get("X-WOPI-ItemVersion"))
	saved := ann.wopi("PUT", "a", "", "again")
	assert.NotEqual(t, first, saved.header.Get("X-WOPI-ItemVersion"))
	assert.Equal(t, version(), saved.header.Get("X-WOPI-ItemVersion"))
	assert.Equal(t, http.StatusRequestEntityTooLarge, ann.wopi("PUT", "a", "", strings.Repeat("x", 101)).status)
	got := ann.do("GET", "/wopi/files/plan.docx/contents", nil)
	assert.Equal(t, "again", string(got.text))
	assert.Equal(t, version(), got.header.Get("X-WOPI-ItemVersion"))
	assert.Equal(t, http.StatusPreconditionFailed, ann.with("X-WOPI-MaxExpectedSize", "4").do("GET", "/wopi/files/plan.docx/contents", nil).status)
	assert.Equal(t, http.StatusNotImplemented, ann.do("GET", "/wopi/containers/x", nil).status)
}

// A PutFile without a lock takes one for itself. An operation at this moment gets 409 and no id, because no office suite has
// chosen one.
func TestTheLockOfAPutFileHasNoID(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ann := s.as(t, "ann")
	ann.status(http.StatusCreated, "PUT /dav/plan.docx text")
	other, err := locks.Open(t.Context(), s.Store(), locks.Config{})
	require.NoError(t, err)
	t.Cleanup(other.Close)
	_, err = other.Acquire(t.Context(), locks.Request{
		Paths: []locks.Path{locks.Document("plan.docx")}, TTL: time.Minute, Note: "wopi-change",
		Holder: locks.Holder{ID: sessions.HolderID("\nwopi\nplan.docx"), Name: "bob"},
	})
	require.NoError(t, err)
	for _, operation := range []string{"LOCK", "REFRESH_LOCK", "UNLOCK", "GET_LOCK", "PUT"} {
		a := ann.wopi(operation, "wopi-change", "", "content")
		assert.Equal(t, http.StatusConflict, a.status, operation)
		assert.Empty(t, a.header.Get("X-WOPI-Lock"), operation)
	}
	assert.Equal(t, http.StatusConflict, ann.wopi("LOCK", "new", "wopi-change", nil).status)
}
